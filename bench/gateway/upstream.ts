import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

// The backend of all servers under test. It responds at once with one kilobyte of JSON.
const BODY = JSON.stringify({ success: true, data: { text: 'x'.repeat(980) } })
const HEADERS = ['Content-Type', 'application/json', 'Content-Length', String(BODY.length)]

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => response.writeHead(200, HEADERS).end(BODY))
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  // The server listens on a TCP port, so its address is not a path.
  process.stdout.write(`upstream at http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
process.on('SIGTERM', () => process.exit(0))
