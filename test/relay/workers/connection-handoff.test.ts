import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import t, { type Test } from 'tap'
import { ConnectionReceiver } from '../../../src/relay/workers/connection-handoff.js'
import { IpcConnection } from '../../../src/relay/workers/ipc.js'
import { portOf } from '../../helper/address.js'

/** An HTTP server that gets all its connections from a receiver. */
const startReceiver = async (t: Test) => {
  const discard = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  const receiver = new ConnectionReceiver(new IpcConnection(discard, (error) => t.fail(String(error))))
  const options = { headersTimeout: 100, requestTimeout: 100, connectionsCheckingInterval: 20 }
  receiver.serve(
    createHttpServer(options, (_request, response) => response.end('ok')),
    null
  )
  const acceptor = createServer((socket) => process.emit('message', 'connection', socket))
  t.teardown(() => acceptor.close())
  await once(acceptor.listen(0, '127.0.0.1'), 'listening')
  const port = portOf(acceptor)
  return { receiver, open: (): Socket => connect(port, '127.0.0.1').setEncoding('latin1') }
}

t.test('an HTTP server with received connections responds, and applies its request timeout', async (t) => {
  const { receiver, open } = await startReceiver(t)
  const complete = open()
  complete.write('GET / HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n')
  t.match((await once(complete, 'data'))[0], /^HTTP\/1\.1 200 /)
  const incomplete = open()
  incomplete.write('GET / HTTP/1.1\r\n')
  t.match((await once(incomplete, 'data'))[0], /^HTTP\/1\.1 408 /)
  incomplete.destroy()

  t.equal(await receiver.closed(), undefined, 'all connections are closed')
})
