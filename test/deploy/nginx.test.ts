import t from 'tap'
import { NGINX_TIMEOUT_S, startNginx } from './proxies.js'
import { proxySuite } from './proxy-suite.js'

t.test('nginx', (t) => proxySuite(t, startNginx, { keepsSockets: true, silenceS: NGINX_TIMEOUT_S }))
