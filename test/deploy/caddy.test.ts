import t from 'tap'
import { startCaddy } from './proxies.js'
import { proxySuite } from './proxy-suite.js'

t.test('Caddy', (t) => proxySuite(t, startCaddy, { keepsSockets: false, idleTimeoutS: 0 }))
