import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { isClosed, onceClosed } from '../../../src/gateway/http/response-close.js'
import { portOf } from '../../helper/address.js'
import type { Teardown } from '../../helper/child.js'
import { firstTwo, required } from '../../helper/required.js'

const startServer = async (t: Teardown) => {
  const responses: ServerResponse[] = []
  const arrivals: (() => void)[] = []
  const server = createServer((request, response) => {
    // As a handler that reads the body does.
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

  /** Sends that many requests at once on one connection, and waits until all have arrived. */
  const pipeline = async (count: number): Promise<Socket> => {
    const socket = connect(portOf(server), '127.0.0.1')
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
    t.test(`a finished response is reported once, ${count} on a connection`, async (t) => {
      const { responses, pipeline } = await startServer(t)
      const socket = await pipeline(count)
      const { calls, all } = countCalls(responses)
      t.same(calls, Array(count).fill(0))
      t.notOk(responses.some(isClosed))

      // In reverse order: each waits for the previous ones.
      for (const response of responses.toReversed()) response.end('x')
      await all

      socket.destroy()
      await once(socket, 'close')
      t.same(calls, Array(count).fill(1))
      t.ok(responses.every(isClosed))
    })

    t.test(
      `a response is reported as closed if the connection breaks before it, ${count} on a connection`,
      async (t) => {
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
      }
    )
  }

  t.test('a response is reported once if the connection breaks during it', async (t) => {
    const { responses, pipeline } = await startServer(t)
    const socket = await pipeline(2)
    const { calls, all } = countCalls(responses)

    const first = required(responses[0])
    first.end('x')
    await once(first, 'close')
    socket.destroy()
    await all

    t.same(calls, [1, 1])
  })

  t.test('a finished response leaves no listeners on the connection', async (t) => {
    const { responses, pipeline } = await startServer(t)
    await pipeline(3)
    const connection = required(responses[0]).req.socket
    const before = connection.listenerCount('close')
    const { all } = countCalls(responses)

    for (const response of responses) response.end('x')
    await all

    t.ok(connection.listenerCount('close') <= before)
  })

  t.test('a response that is already finished is reported at once', async (t) => {
    const { responses, pipeline } = await startServer(t)
    await pipeline(1)
    const response = required(responses[0])
    response.end('x')
    await once(response, 'close')

    t.same(countCalls([response]).calls, [1])
  })

  t.test('a response whose connection is already broken is reported at once', async (t) => {
    const { responses, pipeline } = await startServer(t)
    const socket = await pipeline(2)
    const [first, second] = firstTwo(responses)

    socket.destroy()
    await once(first, 'close')

    t.same(countCalls([second]).calls, [1])
  })
})
