import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import { nextData, openSocket } from '../../helper/exact-http.js'
import { send } from '../../helper/http.js'
import { startRelay } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'

const CONNECT = JSON.stringify({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
const half = CONNECT.slice(0, 20)

const beginBody = async (url: string, path: string): Promise<Socket> => {
  const socket = await openSocket(url)
  socket.write(`POST ${path} HTTP/1.1\r\nHost: relay\r\nContent-Length: ${CONNECT.length}\r\n\r\n${half}`)
  return socket
}

for (const path of ['/connection/http_stream', '/connection/sse']) {
  t.test(`incomplete bodies of ${path}`, async (t) => {
    const isFull = async (url: string): Promise<boolean> =>
      (await send(url, path, { method: 'POST', body: 'no command' })).status === 503

    t.test(`an incomplete request to ${path} counts against connection_limit`, async (t) => {
      const { url } = await startRelay(t, { client: { connection_limit: 1 } })
      const socket = await beginBody(url, path)
      t.teardown(() => socket.destroy())

      await eventually(() => isFull(url))
      socket.write(CONNECT.slice(half.length))
      const reply = await nextData(socket)
      t.match(reply.toString(), /^HTTP\/1\.1 200 /)
    })

    t.test(`an incomplete request to ${path} counts against connections_per_address`, async (t) => {
      const { url } = await startRelay(t, { client: { connections_per_address: 1 } })
      const socket = await beginBody(url, path)
      t.teardown(() => socket.destroy())

      const next = () => send(url, path, { method: 'POST', body: 'no command' })
      await eventually(async () => (await next()).status === 429)
      t.equal((await next()).status, 429)
    })

    t.test(`an aborted request to ${path} no longer counts against the limits`, async (t) => {
      const { url } = await startRelay(t, { client: { connection_limit: 1 } })
      const socket = await beginBody(url, path)
      await eventually(() => isFull(url))
      socket.destroy()

      await eventually(async () => !(await isFull(url)))
      t.equal(await isFull(url), false)
    })

    t.test(`an incomplete request to ${path} receives 408 after stale_close_delay`, async (t) => {
      const { url } = await startRelay(t, { client: { connection_limit: 1, stale_close_delay: '300ms' } })
      const reply = await text(await beginBody(url, path))

      t.match(reply, /^HTTP\/1\.1 408 /)
      await eventually(async () => !(await isFull(url)))
    })
  })
}

t.test('a body of /emulation that is incomplete for 10 s receives 408', async (t) => {
  const { url } = await startRelay(t)

  t.match(await text(await beginBody(url, '/emulation')), /^HTTP\/1\.1 408 /)
})

t.test('a body of http_stream that is incomplete for 10 s receives 408 for any stale_close_delay', async (t) => {
  const { url } = await startRelay(t, { client: { stale_close_delay: '60s' } })

  t.match(await text(await beginBody(url, '/connection/http_stream')), /^HTTP\/1\.1 408 /)
})
