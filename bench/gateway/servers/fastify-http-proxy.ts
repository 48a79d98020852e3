import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'

const app = Fastify()
await app.register(httpProxy, { upstream: process.env.BACKEND_URL ?? '', prefix: '/api', rewritePrefix: '/api' })
process.stdout.write(`listening at ${await app.listen({ port: 0 })}\n`)
