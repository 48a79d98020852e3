import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

// Shared by all reference servers: the publish API, the token check and the listening address. They have no limits, history,
// recovery or namespaces.

const SECRET = process.env.REALTIME_HMAC_SECRET ?? ''
const KEY = process.env.REALTIME_API_KEY ?? ''

export type Publish = (channel: string, body: string) => void

/** `POST /api/publish`; the body is `{"channel":…,"data":…}`, in this order. */
export const createApi = (publish: Publish): Server =>
  createServer((request: IncomingMessage, response: ServerResponse) => {
    if (request.headers['x-api-key'] !== KEY) {
      response.writeHead(401).end()
      return
    }
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      const { channel } = JSON.parse(body)
      response.writeHead(200, RESPONSE_HEADERS).end(RESPONSE)
      publish(channel, body)
    })
  })

const RESPONSE = '{"result":{}}'
const RESPONSE_HEADERS = ['Content-Type', 'application/json', 'Content-Length', String(RESPONSE.length)]

export const listen = (server: Server): void => {
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1', 4096, () => {
    // The server listens on a TCP port, so its address is not a path.
    process.stdout.write(`listening at http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
  })
  process.on('SIGTERM', () => process.exit(0))
}

/** Checks only the HS256 signature and the expiry. */
export const isGoodToken = (token: string): boolean => {
  const [head, payload = '', signature = ''] = token.split('.')
  const expected = createHmac('sha256', SECRET).update(`${head}.${payload}`).digest()
  const given = Buffer.from(signature, 'base64url')
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return false
  return JSON.parse(Buffer.from(payload, 'base64url').toString()).exp * 1000 > Date.now()
}

export interface Client {
  send(text: string): void
  subscribe(channel: string): void
}

/** Handles connect and subscribe commands, one per line. */
export const handleCommands = (client: Client, message: string): void => {
  for (const line of message.split('\n')) {
    const { id, connect, subscribe } = JSON.parse(line)
    if (connect !== undefined) {
      if (!isGoodToken(connect.token)) return
      client.send(`{"id":${id},"connect":{"client":"c","version":"peer","ping":25,"pong":true}}`)
    } else if (subscribe !== undefined) {
      client.subscribe(subscribe.channel)
      client.send(`{"id":${id},"subscribe":{}}`)
    }
  }
}

/** A server's text frame. */
export const frameOf = (text: string): Buffer => {
  const length = Buffer.byteLength(text)
  const head = length < 126 ? 2 : length < 65_536 ? 4 : 10
  const frame = Buffer.allocUnsafe(head + length)
  frame[0] = 0x81
  if (head === 2) frame[1] = length
  else if (head === 4) {
    frame[1] = 126
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = 127
    frame.writeBigUInt64BE(BigInt(length), 2)
  }
  frame.write(text, head)
  return frame
}

/** The unmodified data of a publish body. */
export const dataIn = (body: string): string => body.slice(body.indexOf('"data":') + '"data":'.length, -1)
