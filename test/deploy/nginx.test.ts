import t from 'tap'
import { startNginx } from './proxies.js'
import { proxySuite } from './proxy-suite.js'

t.test('nginx', (t) => proxySuite(t, startNginx, { keepsSockets: true }))
