import { once } from 'node:events'
import t from 'tap'
import { browse, responseOf } from '../../helper/exact-http.js'
import { startGateway } from '../../helper/gateway.js'
import { startBackend } from '../../helper/recording-backend.js'

const TIMEOUT_MS = 500

for (const type of ['text/event-stream', 'Text/Event-Stream; charset=utf-8']) {
  t.test(`a response of type ${type} may be silent for longer than BACKEND_TIMEOUT_MS`, async (t) => {
    const backend = await startBackend(t)
    let finish = (): void => undefined
    backend.respond = (_request, response) => {
      response.writeHead(200, { 'content-type': type }).flushHeaders()
      finish = () => response.end('data: late\n\n')
    }
    const { url } = await startGateway(t, { backend, env: { BACKEND_TIMEOUT_MS: String(TIMEOUT_MS) } })

    const reply = await responseOf(browse(url, '/api/unknown').end())
    t.equal(reply.statusCode, 200, 'the head arrives before any event')
    t.equal(reply.headers['content-type'], type)
    t.equal(reply.headers['x-accel-buffering'], 'no', 'for nginx')
    await new Promise((resolve) => setTimeout(resolve, 4 * TIMEOUT_MS))
    finish()
    let text = ''
    for await (const chunk of reply) text += chunk

    t.equal(text, 'data: late\n\n')
  })
}

t.test('an event stream that is silent for longer than BACKEND_STREAM_IDLE_MS is closed', async (t) => {
  const backend = await startBackend(t)
  const closed = new Promise((resolve) => {
    backend.respond = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n')
      response.once('close', resolve)
    }
  })
  const { url } = await startGateway(t, { backend, env: { BACKEND_STREAM_IDLE_MS: String(TIMEOUT_MS) } })

  const reply = await responseOf(browse(url, '/api/unknown').end())
  const [first] = await once(reply, 'data')
  t.equal(String(first), 'data: first\n\n')
  const [error] = await once(reply, 'error')

  t.equal(error.code, 'ECONNRESET')
  await closed
})

t.test('an event stream stays open for longer than BACKEND_STREAM_IDLE_MS while events arrive', async (t) => {
  const backend = await startBackend(t)
  const events = 8
  backend.respond = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    let sent = 0
    const timer = setInterval(() => {
      response.write('data: x\n\n')
      if (++sent === events) {
        clearInterval(timer)
        response.end()
      }
    }, TIMEOUT_MS / 2)
  }
  const env = { BACKEND_STREAM_IDLE_MS: String(4 * TIMEOUT_MS), BACKEND_TIMEOUT_MS: String(4 * TIMEOUT_MS) }
  const { send } = await startGateway(t, { backend, env })

  t.equal((await send('/api/unknown')).body, 'data: x\n\n'.repeat(events))
})

t.test('any other response is cut off when it is silent for BACKEND_TIMEOUT_MS', async (t) => {
  const backend = await startBackend(t)
  backend.respond = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream-not' }).write('half')
  }
  const { send } = await startGateway(t, { backend, env: { BACKEND_TIMEOUT_MS: String(TIMEOUT_MS) } })

  await t.rejects(send('/api/unknown'), { code: 'ECONNRESET' })
})
