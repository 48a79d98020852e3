import t from 'tap'
import { startGateway } from '../../helper/gateway.js'
import { sendRaw } from '../../helper/http.js'

t.test('the catch-all', async (t) => {
  t.test('does not wait for the body of an OPTIONS, which nobody asked for a token', async (t) => {
    const { url, backend } = await startGateway(t)
    const head =
      'OPTIONS /api/unknown HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n'

    const answer = await sendRaw(url, `${head}abc`)

    t.equal(answer.status, 200)
    t.match(backend.requests, [{ method: 'OPTIONS', url: '/api/unknown', body: '' }])
  })
})
