import t from 'tap'
import { startChild } from '../helper/child.js'
import { environment } from '../helper/environment.js'

// Validates a body as a page does, in a process without code generation from strings.
const PROGRAM = `
import { createBuildingClient } from './dist/src/client/buildings/index.js'
let canEvaluate = true
try { new Function('return 1')() } catch { canEvaluate = false }
const csrfResponse = () => new Response('{"csrfToken":"t"}', { headers: { 'content-type': 'application/json' } })
const { api } = createBuildingClient({ fetch: async () => csrfResponse(), cookies: () => 'auth_token_expiry=%5B' })
const refused = await api.zones.create({ name: '', polygon: 7 }).catch((error) => error.details.length)
const taken = await api.zones.create({ name: 'Lobby' })
console.log('result', JSON.stringify({ canEvaluate, refused, taken }))
process.exit(0)
`

t.test("the client validates bodies under a CSP without 'unsafe-eval'", async (t) => {
  const child = await startChild(
    t,
    process.execPath,
    ['--disallow-code-generation-from-strings', '--input-type=module', '--eval', PROGRAM],
    { PATH: environment.path }
  )
  const line = await child.waitForLine(/^result /)

  t.same(JSON.parse(line.slice('result '.length)), { canEvaluate: false, refused: 2, taken: { csrfToken: 't' } })
})
