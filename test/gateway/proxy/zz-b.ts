import t from 'tap'
import { startGateway, browserHeaders } from '../../helper/gateway.js'
t.test('x', async (t) => {
  const { send, backend, logs } = await startGateway(t)
  const a = await send('/api/zones/7', { method: 'PUT', headers: { ...browserHeaders(), 'content-type': 'application/json' }, body: '{"name": "ü",  "a": 1}' })
  console.error(a.status, a.body, backend.requests.map(r => [r.body, r.headers]), logs.filter(l => l.msg !== 'request'))
})
