import t from 'tap'
import { sendRaw } from '../../helper/http.js'
import { startRelay } from '../../helper/relay.js'

const lines = (count: number): string => 'a:\r\n'.repeat(count)
const UPGRADE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n'

t.test('header lines', async (t) => {
  const { url } = await startRelay(t)

  t.test('a request with 100 header lines is served', async (t) => {
    const { status } = await sendRaw(url, `GET /health HTTP/1.1\r\nHost: a\r\n${lines(98)}Connection: close\r\n\r\n`)

    t.equal(status, 200)
  })

  for (const path of [
    '/health',
    '/metrics',
    '/api/publish',
    '/connection/http_stream',
    '/connection/sse',
    '/unknown'
  ]) {
    t.test(`a request for ${path} with 101 header lines receives 431`, async (t) => {
      const { status } = await sendRaw(url, `GET ${path} HTTP/1.1\r\nHost: a\r\n${lines(99)}Connection: close\r\n\r\n`)

      t.equal(status, 431)
    })
  }

  t.test('a WebSocket handshake with more than 100 header lines receives 431', async (t) => {
    const request = `GET /connection/websocket HTTP/1.1\r\nHost: a\r\n${UPGRADE}${lines(100)}\r\n`

    t.equal((await sendRaw(url, request)).status, 431)
  })

  for (const count of [1100, 2100, 3500]) {
    t.test(`/metrics stays closed to a proxied request with X-Forwarded-For after ${count} header lines`, async (t) => {
      const request = `GET /metrics HTTP/1.1\r\nHost: a\r\n${lines(count)}X-Forwarded-For: 192.0.2.1\r\n\r\n`

      t.equal((await sendRaw(url, request)).status, 431)
    })
  }

  t.test('headers larger than 16 KiB receive 431', async (t) => {
    const request = `GET /health HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`

    t.equal((await sendRaw(url, request)).status, 431)
  })
})
