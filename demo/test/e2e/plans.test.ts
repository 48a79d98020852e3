import './plans/plan.js'
import './plans/part.js'
import './plans/past.js'
import './plans/floors.js'
// Last, because it restarts the backend.
import './plans/freshness.js'
