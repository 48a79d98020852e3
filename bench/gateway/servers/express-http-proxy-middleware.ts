import { Agent, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { peerPackage } from '../../harness/peer-packages.js'

/** The parts of the packages that are used here. */
type Express = () => {
  use(middleware: object): void
  listen(port: number, host: string, listening: () => void): Server
}
interface HttpProxyMiddleware {
  createProxyMiddleware(options: object): object
}

const express = peerPackage('express') as Express
const { createProxyMiddleware } = peerPackage('http-proxy-middleware') as HttpProxyMiddleware

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
