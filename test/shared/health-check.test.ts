import { resolve } from 'node:path'
import t from 'tap'
import { startChild } from '../helper/child.js'
import { startBackend } from '../helper/recording-backend.js'

const check = async (...args: readonly string[]) => {
  const child = await startChild(t, process.execPath, [resolve('dist/src/shared/health-check.js'), ...args], {})
  return { code: (await child.exited).code, stderr: child.stderr }
}

t.test('a health check', async (t) => {
  const backend = await startBackend(t)

  t.test('a health check succeeds with a 200 response', async (t) => {
    t.same(await check(`${backend.url}/health`), { code: 0, stderr: '' })
    t.match(backend.requests, [{ method: 'GET', url: '/health' }])
  })

  t.test('a failed health check prints one line', async (t) => {
    t.match(
      await check('http://127.0.0.1:1/health'),
      { code: 1, stderr: /^not healthy: [^\n]+\n$/ },
      'the port is closed'
    )
    t.match(await check(), { code: 1, stderr: /^not healthy: [^\n]+\n$/ }, 'the URL is missing')
  })

  t.test('a health check fails with a 503 response', async (t) => {
    backend.respond = (_request, response) => response.writeHead(503).end()

    t.same(await check(`${backend.url}/health`), { code: 1, stderr: 'not healthy: status 503\n' })
  })
})
