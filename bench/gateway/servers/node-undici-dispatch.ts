import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Dispatcher, Pool } from 'undici'

// A minimal proxy on Node.js: no checks, no additional headers, almost no error handling.
const pool = new Pool(process.env.BACKEND_URL ?? '', { connections: 128, pipelining: 1 })

const server = createServer((request, response) => {
  const { host: _host, connection: _connection, ...headers } = request.headers
  const hasBody = request.method === 'POST'
  pool.dispatch(
    {
      path: request.url ?? '/',
      // The load generator sends only GET and POST.
      method: request.method as Dispatcher.HttpMethod,
      headers,
      body: hasBody ? request : null
    },
    {
      onRequestStart: () => undefined,
      onResponseStart: (controller, status) => {
        response.writeHead(
          status,
          // undici's HTTP/1.1 parser provides an array of Buffers.
          (controller.rawHeaders as Buffer[]).map((part) => part.toString('latin1'))
        )
      },
      onResponseData: (_controller, chunk) => {
        response.write(chunk)
      },
      onResponseEnd: () => {
        response.end()
      },
      onResponseError: () => {
        response.destroy()
      }
    }
  )
})
server.listen(0, '127.0.0.1', () => {
  // The server listens on a TCP port, so its address is not a path.
  process.stdout.write(`listening at http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
