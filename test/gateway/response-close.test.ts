import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import t from 'tap'
import { isClosed, onceClosed } from '../../src/gateway/request-context.js'
import type { Teardown } from '../helper/child.js'

const startServer = async (t: Teardown) => {
  const responses: ServerResponse[] = []
  const arrivals: (() => void)[] = []
  const server = createServer((request, response) => {
    // As any handler does that reads the body.
    request.resume()
    responses.push(response)
    for (const arrived of arrivals) arrived()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })

  /** Sends that many requests at once on one connection, and waits until all of them are here. */
  const pipeline = async (count: number): Promise<Socket> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.resume().on('error', () => undefined)
    const here = new Promise<void>((resolve) => arrivals.push(() => responses.length === count && resolve()))
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(count))
    await here
    return socket
  }
  return { responses, pipeline }
}

/** Counts the calls for each response; `all` resolves when each has had one. */
const countCalls = (responses: readonly ServerResponse[]) => {
  const calls = responses.map(() => 0)
  const all = Promise.all(
    responses.map(
      (response, index) =>
        new Promise<void>((resolve) => {
          onceClosed(response, () => {
            calls[index] = (calls[index] ?? 0) + 1
            resolve()
          })
        })
    )
  )
  return { calls, all }
}

t.test('a response', async (t) => {
  for (const count of [1, 3, 50]) {
    t.test(`says that it is over when its answer is out, ${count} on a connection`, async (t) => {
      const { responses, pipeline } = await startServer(t)
      const socket = await pipeline(count)
      const { calls, all } = countCalls(responses)
      t.same(calls, Array(count).fill(0))
      t.notOk(responses.some(isClosed))

      // The last first: each waits for those before it.
      for (const response of responses.toReversed()) response.end('x')
      await all

      socket.destroy()
      await once(socket, 'close')
      t.same(calls, Array(count).fill(1))
      t.ok(responses.every(isClosed))
    })

    t.test(`says that it is over when the connection breaks before any answer, ${count} on it`, async (t) => {
      const warnings: Error[] = []
      const onWarning = (warning: Error) => void warnings.push(warning)
      process.on('warning', onWarning)
      t.teardown(() => process.off('warning', onWarning))
      const { responses, pipeline } = await startServer(t)
      const socket = await pipeline(count)
      const { calls, all } = countCalls(responses)

      socket.destroy()
      await all

      t.same(calls, Array(count).fill(1))
      t.ok(responses.every(isClosed))
      t.same(warnings, [])
    })
  }

  t.test('says once that it is over when the connection breaks after its turn has come', async (t) => {
    const { responses, pipeline } = await startServer(t)
    const socket = await pipeline(2)
    const { calls, all } = countCalls(responses)

    responses[0]?.end('x')
    await once(responses[0] as ServerResponse, 'close')
    socket.destroy()
    await all

    t.same(calls, [1, 1])
  })

  t.test('leaves nothing on the connection when its answer is out', async (t) => {
    const { responses, pipeline } = await startServer(t)
    await pipeline(3)
    const connection = (responses[0] as ServerResponse).req.socket
    const before = connection.listenerCount('close')
    const { all } = countCalls(responses)

    for (const response of responses) response.end('x')
    await all

    t.ok(connection.listenerCount('close') <= before)
  })

  t.test('says at once that it is over where its answer is out already', async (t) => {
    const { responses, pipeline } = await startServer(t)
    await pipeline(1)
    const [response] = responses as [ServerResponse]
    response.end('x')
    await once(response, 'close')

    t.same(countCalls([response]).calls, [1])
  })

  t.test('says at once that it is over where the connection broke while it waited', async (t) => {
    const { responses, pipeline } = await startServer(t)
    const socket = await pipeline(2)
    const [first, second] = responses as [ServerResponse, ServerResponse]

    socket.destroy()
    await once(first, 'close')

    t.same(countCalls([second]).calls, [1])
  })
})
