import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dump } from 'js-yaml'
import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { browserHeaders, startGateway } from '../../helper/gateway.js'
import { generatedDocument } from './generated-document.js'

const MB = 1_000_000

t.test('a gateway serves the routes of a published description', async (t) => {
  const file = join(ROOT, 'node_modules/@figma/rest-api-spec/openapi/openapi.yaml')
  const { send } = await startGateway(t, { env: { GATEWAY_ROUTES: file, GATEWAY_UNKNOWN_PATHS: 'refuse' } })

  t.not((await send('/api/v1/me')).status, 404)
  t.equal((await send('/api/not/in/the/document')).status, 404)
})

const GENERATED = [
  { name: 'generated.json', resources: 640, version: '3.0.3', size: [2.5 * MB, 3.5 * MB] },
  { name: 'generated.yaml', resources: 420, version: '3.1.0', size: [2 * MB, 3.5 * MB] }
] as const

for (const { name, size, ...options } of GENERATED) {
  t.test(`a gateway validates with ${name}, a document of ${size[0] / MB} MB and more`, async (t) => {
    const file = join(t.testdir({}), name)
    const document = generatedDocument(options)
    writeFileSync(file, name.endsWith('.json') ? JSON.stringify(document) : dump(document, { noRefs: true }))
    const bytes = statSync(file).size
    t.ok(bytes > size[0] && bytes < size[1], `${bytes} bytes`)
    const { send, backend } = await startGateway(t, { env: { GATEWAY_ROUTES: file } })
    const post = async (path: string, body: object) => {
      const headers = { ...browserHeaders(), 'content-type': 'application/json' }
      return (await send(path, { method: 'POST', headers, body: JSON.stringify(body) })).status
    }

    t.equal(await post('/api/v1/resources0', { field_0: 'x', field_7: { field_0: 5 } }), 400, 'of a referenced schema')
    t.equal(await post('/api/v1/resources0', { field_0: 'x', field_1: 5, field_3: true }), 200)
    t.equal(await post('/api/v1/resources0', { unknown: 1 }), 400)
    t.equal((await send('/api/v1/resources7?limit=101')).status, 400)
    t.equal((await send('/api/v1/resources7/not-a-uuid')).status, 400)
    t.equal((await send('/api/v1/resources7/0f3c1d9e-7a44-4b8e-9a57-3f0f4c1f2a10')).status, 200)
    t.equal(backend.requests.length, 2)
  })
}
