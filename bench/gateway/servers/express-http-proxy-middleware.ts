import { Agent } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createProxyMiddleware } from 'http-proxy-middleware'

const app = express()
app.use(
  createProxyMiddleware({
    target: process.env.BACKEND_URL ?? '',
    pathFilter: '/api',
    agent: new Agent({ keepAlive: true })
  })
)
const server = app.listen(0, '127.0.0.1', () => {
  // The server listens on a TCP port, so its address is not a path.
  process.stdout.write(`listening at http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
