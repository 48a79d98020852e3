import Fastify from 'fastify'
import { gatewayConfig } from '../../../src/gateway/config.js'
import { openBackend } from '../../../src/gateway/proxy/backend.js'
import { decorateRequestContext } from '../../../src/gateway/request-context.js'
import { catchAll } from '../../../src/gateway/routes/catch-all.js'

// The same server and the same way to the backend, with no hook in between: what the chain costs is the difference.
const config = gatewayConfig(process.env)
const app = Fastify()
decorateRequestContext(app)
catchAll(app, config, openBackend(config.backend))
process.stdout.write(`listening at ${await app.listen(config.listen)}\n`)
