import './monitoring/dashboard.js'
import './monitoring/watchers.js'
// Last, because it changes the state of receivers.
import './monitoring/alerts.js'
