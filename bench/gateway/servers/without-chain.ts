import Fastify from 'fastify'
import { AccessRules } from '../../../src/gateway/access.js'
import { gatewayConfig } from '../../../src/gateway/config.js'
import { requestContext } from '../../../src/gateway/plugins/request-context.js'
import { openBackend } from '../../../src/gateway/proxy/backend-pool.js'
import { createForwarder } from '../../../src/gateway/proxy/forward.js'
import { mountRoutes } from '../../../src/gateway/routes/mount-routes.js'
import { zones } from '../../../src/gateway/routes/tables/zones.js'

// The same server and forwarder without hooks. The difference to the gateway is the cost of the chain.
const config = gatewayConfig(process.env)
const app = Fastify()
await app.register(requestContext)
mountRoutes(app, [zones], {
  access: new AccessRules(),
  forward: createForwarder({
    // Without the chain all requests are anonymous. They must not wait for a share of the connections.
    backend: openBackend({ ...config.backend, anonymousPercent: 100 }),
    publicHost: null,
    headerTable: {},
    metrics: { backendResponded: () => undefined, backendFailed: () => undefined },
    log: { error: () => undefined }
  }),
  local: new Map(),
  uploadBytes: config.limits.uploadBytes,
  unknownPaths: 'forward'
})
process.stdout.write(`listening at ${await app.listen(config.listen)}\n`)
