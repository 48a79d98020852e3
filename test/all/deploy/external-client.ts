import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import { text } from 'node:stream/consumers'
import { Centrifuge } from 'centrifuge'
import type { Test } from 'tap'
import { Agent, fetch as undiciFetch } from 'undici'
import { WebSocket } from 'ws'
import { responseOf } from '../../helper/exact-http.js'
import type { Message } from '../../helper/http.js'
import { observed } from '../../helper/observed-fetch.js'
import { APP, REALTIME } from './certificate.js'
import { PUBLISH_KEY, relayTokenOf } from './programs.js'
import type { RunningProxy } from './proxies.js'

/** The origin of the app's pages. */
export const PAGE = `https://${APP}`

export interface ExternalResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** The client address of a request, in 127.0.0.0/8. */
export interface From {
  readonly from?: string
}

export interface SocketOptions extends From {
  readonly origin?: string
  /** The host that the client connects to. */
  readonly name?: string
}

/** Browsers and publishers in front of the proxy. They use TLS and verify the certificate. */
export class ExternalClient {
  readonly #proxy: RunningProxy

  constructor(proxy: RunningProxy) {
    this.#proxy = proxy
  }

  #connection(host: string, from: string) {
    const { port, certificate } = this.#proxy
    return { host: '127.0.0.1', port, servername: host, ca: certificate.pem, localAddress: from }
  }

  /** Sends one request on a new connection, with the path unchanged. */
  async send(host: string, path: string, message: Message & From = {}): Promise<ExternalResponse> {
    const response = await this.begin(host, path, message)
    const { statusCode = 0, headers } = response
    return { status: statusCode, headers, body: await text(response) }
  }

  /** Resolves with the head of the response. */
  async begin(host: string, path: string, message: Message & From = {}): Promise<IncomingMessage> {
    const { method = 'GET', headers = {}, body, from = '127.0.0.1' } = message
    const request = httpsRequest({
      ...this.#connection(host, from),
      path,
      method,
      agent: false,
      headers: { host: `${host}:${this.#proxy.port}`, ...headers }
    })
    request.end(body)
    return responseOf(request)
  }

  async publish(channel: string, data: unknown, idempotency_key?: string): Promise<ExternalResponse> {
    return this.send(REALTIME, '/api/publish', {
      method: 'POST',
      headers: { 'x-api-key': PUBLISH_KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ channel, data, idempotency_key })
    })
  }

  /** A bare WebSocket. */
  socket({ from = '127.0.0.1', origin = PAGE, name = REALTIME }: SocketOptions = {}): WebSocket {
    const { host, ...connection } = this.#connection(name, from)
    return new WebSocket(`wss://${host}:${connection.port}/connection/websocket`, {
      ...connection,
      headers: { host: `${name}:${connection.port}`, origin }
    })
  }

  /**
   * The official client. `onSocket` is called with each socket that it opens. Unless `reconnectsFast` is false, its delays are
   * shorter than its own.
   */
  client(
    t: Test,
    transport: 'websocket' | 'http_stream',
    {
      onSocket,
      reconnectsFast = true,
      name = REALTIME,
      ...from
    }: Omit<SocketOptions, 'origin'> & {
      readonly onSocket?: (socket: WebSocket) => void
      readonly reconnectsFast?: boolean
    } = {}
  ): Centrifuge {
    const open = (): WebSocket => {
      const socket = this.socket({ ...from, name })
      onSocket?.(socket)
      return socket
    }
    // The official client constructs its sockets itself.
    class ProxySocket {
      constructor() {
        // biome-ignore lint/correctness/noConstructorReturn: the socket needs its own certificate and origin
        return open()
      }
    }
    const { port, certificate } = this.#proxy
    const lookup: LookupFunction = (_name, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }])
    const dispatcher = new Agent({ connect: { ca: certificate.pem, lookup } })
    const base = `https://${name}:${port}`
    const endpoint =
      transport === 'websocket' ? `wss://${name}:${port}/connection/websocket` : `${base}/connection/http_stream`
    const client = new Centrifuge([{ transport, endpoint }], {
      websocket: ProxySocket,
      fetch: (url: string, init: object) =>
        observed(
          undiciFetch(url, { ...init, dispatcher, headers: { origin: PAGE, 'content-type': 'application/json' } })
        ),
      readableStream: ReadableStream,
      emulationEndpoint: `${base}/emulation`,
      ...(reconnectsFast && { minReconnectDelay: 1, maxReconnectDelay: 50 }),
      getToken: async () => relayTokenOf('42')
    })
    t.teardown(async () => {
      client.disconnect()
      await dispatcher.destroy()
    })
    return client
  }
}
