import { dirname } from 'node:path'
import t from 'tap'
import { rejectedFiles } from './biome.js'

// [file, imported module, whether that is allowed]
const IMPORTS: readonly (readonly [string, string, boolean])[] = [
  ['src/gateway/a.ts', '../relay/core/hub.js', false],
  ['src/gateway/plugins/b.ts', '../../relay/config.js', false],
  ['src/gateway/c.ts', '../client/api.js', false],
  ['src/gateway/d.ts', '../../demo/backend/main.js', false],
  ['src/gateway/f.ts', '../shared/env.js', true],
  ['src/gateway/g.ts', '../../schemas/zones.js', true],
  ['src/gateway/h.ts', 'fastify', true],
  ['src/gateway/i.ts', '../openapi/description.js', true],
  ['src/openapi/a.ts', '../gateway/access.js', false],
  ['src/openapi/b.ts', '../relay/config.js', false],
  ['src/openapi/c.ts', 'fastify', false],
  ['src/openapi/d.ts', '../../schemas/zones.js', false],
  ['src/openapi/e.ts', '../shared/env.js', true],
  ['src/openapi/f.ts', './documents.js', true],
  ['src/openapi/g.ts', 'ajv', true],
  ['src/relay/transport/a.ts', '../../gateway/errors.js', false],
  ['src/relay/b.ts', 'fastify', false],
  ['src/relay/c.ts', '@fastify/cookie', false],
  ['src/relay/transport/d.ts', 'ws', true],
  ['src/relay/transport/e.ts', '../core/hub.js', true],
  ['src/relay/core/f.ts', '../transport/server.js', false],
  ['src/relay/core/g.ts', '../../shared/jwt.js', false],
  ['src/relay/core/log.ts', '../../shared/log.js', true],
  ['src/relay/core/is-object.ts', '../../shared/is-object.js', true],
  ['src/relay/core/pattern.ts', '../../shared/linear-regexp.js', true],
  ['src/relay/core/token-errors.ts', '../../shared/token-errors.js', true],
  ['src/relay/core/h.ts', 'node:fs', false],
  ['src/relay/core/i.ts', 'ws', false],
  ['src/relay/core/j.ts', './hub.js', true],
  ['src/relay/engine/k.ts', '../transport/server.js', false],
  ['src/relay/engine/l.ts', '../core/engine-interfaces.js', true],
  ['src/shared/a.ts', '../gateway/errors.js', false],
  ['src/shared/b.ts', '../relay/config.js', false],
  ['src/shared/c.ts', 'fastify', false],
  ['src/shared/d.ts', 'pino', true],
  ['src/client/a.ts', '../gateway/routes/tables/zones.js', false],
  ['src/client/api/b.ts', '../../gateway/errors.js', false],
  ['src/client/realtime/c.ts', '../../relay/core/protocol.js', false],
  ['src/client/d.ts', '../shared/jwt.js', false],
  ['src/client/e.ts', 'node:fs', false],
  ['src/client/f.ts', 'fastify', false],
  ['src/client/g.ts', 'ws', false],
  ['src/client/h.ts', '@sinclair/typebox/compiler', false],
  ['src/client/i.ts', 'vue', false],
  ['src/client/api/j.ts', '../../demo/web/main.js', false],
  ['src/client/api/k.ts', '../../../schemas/zones.js', true],
  ['src/client/api/l.ts', '../listeners.js', true],
  ['src/client/api/m.ts', './address.js', true],
  ['src/client/n.ts', '@sinclair/typebox', true],
  ['src/client/o.ts', '@sinclair/typebox/value', true],
  ['src/client/realtime/p.ts', 'centrifuge', true],
  ['demo/web/a.ts', '../../src/gateway/errors.js', false],
  ['demo/web/pages/b.ts', '../../../src/relay/core/protocol.js', false],
  ['demo/web/c.ts', '../../src/shared/jwt.js', false],
  ['demo/web/d.ts', '../backend/route.js', false],
  ['demo/web/e.ts', 'node:fs', false],
  ['demo/web/f.ts', '../../src/client/api/api.js', false],
  ['demo/web/j.ts', 'gatehouse-client', true],
  ['demo/web/g.ts', '../../schemas/zones.js', true],
  ['demo/web/h.ts', 'vue', true],
  ['demo/web/i.ts', '../../src/ui/format.js', true],
  ['src/ui/a.ts', '../client/api/api.js', false],
  ['src/ui/b.ts', '../../demo/web/router.js', false],
  ['src/ui/c.ts', 'node:fs', false],
  ['src/ui/d.ts', './format.js', true],
  ['src/ui/e.ts', 'vue', true],
  ['src/relay-admin/a.ts', '../relay/admin/sessions.js', false],
  ['src/relay-admin/b.ts', '../relay/core/relay.js', false],
  ['src/relay-admin/c.ts', 'node:fs', false],
  ['src/relay-admin/d.ts', '../relay/admin/contract.js', true],
  ['src/relay-admin/e.ts', '../ui/format.js', true],
  ['src/relay-admin/f.ts', 'uplot', true],
  ['src/relay-admin/pages/g.ts', '../../relay/admin/sessions.js', false],
  ['src/relay-admin/pages/h.ts', '../../relay/core/relay.js', false],
  ['src/relay-admin/pages/i.ts', '../../client/api/api.js', false],
  ['src/relay-admin/pages/j.ts', '../../relay/admin/contract.js', true],
  ['src/relay-admin/pages/k.ts', '../api.js', true],
  ['src/relay-admin/pages/l.ts', '../components/chart.js', true],
  ['src/relay-admin/pages/m.ts', '../../ui/format.js', true],
  ['schemas/a.ts', 'node:fs', false],
  ['schemas/b.ts', 'fastify', false],
  ['schemas/c.ts', '../src/shared/env.js', false],
  ['schemas/d.ts', './ids.js', true],
  ['schemas/e.ts', '@sinclair/typebox', true]
]

t.test('import directions', async (t) => {
  const rejected = rejectedFiles(
    Object.fromEntries(
      IMPORTS.map(([file, source]) => [file, `import { a } from '${source}'\n\nexport const b = a\n`])
    ),
    'lint/style/noRestrictedImports'
  )

  for (const [file, source, allowed] of IMPORTS) {
    t.test(`lint ${allowed ? 'allows' : 'forbids'} ${dirname(file)} to import ${source}`, async (t) => {
      t.equal(rejected.has(file), !allowed)
    })
  }
})
