import { once } from 'node:events'
import type { Test } from 'tap'
import { type ClientOptions, WebSocket } from 'ws'
import { isObject } from '../../../src/shared/is-object.js'
import type { EventBackend } from '../../helper/event-backend.js'
import { frameOf, repliesIn } from '../../helper/protobuf.js'
import { type Json, openClient } from '../../helper/raw-client.js'
import { type ConfigFile, relayToken } from '../../helper/relay-rules.js'
import type { ServerMessage } from '../../helper/server-message.js'

/** Options of each proxy, in addition to its endpoint. */
export type ProxyFile = Readonly<Record<string, unknown>>

/** Options of clients. */
export interface ClientFile extends ProxyFile {
  readonly proxy?: ProxyFile
}

/** Long enough for a busy machine, so that only tests of the time limit meet it. */
const TIMEOUT = '30s'

/**
 * A relay whose events go to the backend: `room:` asks about subscribing and publishing, `lease:` about subscribing and expired
 * subscriptions, `open:` about nothing.
 */
export const proxiedFile = (backend: EventBackend, proxy: ProxyFile = {}, client: ClientFile = {}): ConfigFile => {
  const to = (event: string): ProxyFile => ({ endpoint: backend.endpoint(event), timeout: TIMEOUT, ...proxy })
  const { proxy: clientProxies = {}, ...options } = client
  return {
    client: {
      proxy: { connect: { enabled: true, ...to('connect') }, ...clientProxies },
      ...options
    },
    channel: {
      proxy: { subscribe: to('subscribe'), publish: to('publish'), sub_refresh: to('sub_refresh') },
      namespaces: [
        {
          name: 'room',
          subscribe_proxy_enabled: true,
          publish_proxy_enabled: true,
          allow_user_limited_channels: true,
          allow_recovery: true,
          allow_tags_filter: true,
          allowed_delta_types: ['fossil'],
          delta_publish: true,
          history_size: 20,
          history_ttl: '300s'
        },
        { name: 'lease', subscribe_proxy_enabled: true, sub_refresh_proxy_enabled: true, presence: true },
        { name: 'open', allow_subscribe_for_client: true, allow_publish_for_client: true }
      ]
    },
    rpc: {
      proxy: to('rpc'),
      without_namespace: { proxy_enabled: true },
      namespaces: [{ name: 'admin', proxy_enabled: true }, { name: 'closed' }]
    },
    uni_sse: { enabled: true },
    uni_http_stream: { enabled: true },
    uni_websocket: { enabled: true }
  }
}

/** Adds the refresh proxy to `proxiedFile`. */
export const withRefreshProxy = (backend: EventBackend, proxy: ProxyFile = {}): ClientFile => ({
  proxy: { refresh: { enabled: true, endpoint: backend.endpoint('refresh'), timeout: TIMEOUT, ...proxy } }
})

export const CODECS = ['json', 'protobuf'] as const
export type CodecName = (typeof CODECS)[number]

/** A raw client of either codec. Data in commands is JSON text; in replies it is parsed. */
export interface CodecClient {
  send(...commands: readonly Json[]): void
  next(): Promise<ServerMessage>
  request(command: Json): Promise<ServerMessage>
  /** `3501 bad request`. */
  readonly closed: Promise<string>
  /** Everything that was received, as text. */
  readonly received: () => string
  readonly ws: WebSocket
}

export const openCodecClient = (
  t: Test,
  codec: CodecName,
  url: string,
  options: ClientOptions = {}
): Promise<CodecClient> => (codec === 'json' ? openJson(t, url, options) : openProtobuf(t, url, options))

const openJson = async (t: Test, url: string, options: ClientOptions): Promise<CodecClient> => {
  const client = await openClient(t, url, options)
  let received = ''
  client.ws.on('message', (data) => {
    received += data.toString()
  })
  const send = (...commands: readonly Json[]): void => client.send(...commands.map(jsonText))
  return {
    send,
    next: () => client.next(),
    request: (command) => {
      send(command)
      return client.next()
    },
    closed: client.closed,
    received: () => received,
    ws: client.ws
  }
}

/** The command as JSON, with its data spliced in as text. */
const jsonText = (command: Json): string => {
  let data: unknown
  const text = JSON.stringify(command, (name, value) => {
    if (name !== 'data') return value
    data = value
    return 'DATA'
  })
  return text.replace('"DATA"', String(data))
}

/** The command with its data as bytes. */
const withBytes = (command: Json): Json =>
  Object.fromEntries(
    Object.entries(command).map(([name, value]) => {
      if (name === 'data') return [name, Buffer.from(String(value))]
      return [name, isObject(value) ? withBytes(value) : value]
    })
  )

const openProtobuf = async (t: Test, url: string, options: ClientOptions): Promise<CodecClient> => {
  const ws = new WebSocket(`${url.replace('http', 'ws')}/connection/websocket`, 'centrifuge-protobuf', options)
  t.teardown(() => ws.terminate())
  ws.on('error', () => undefined)
  const messages: ServerMessage[] = []
  const waiters: ((message: ServerMessage) => void)[] = []
  let received = ''
  ws.on('message', (data: Buffer) => {
    received += data.toString()
    for (const message of repliesIn(data)) {
      const waiter = waiters.shift()
      if (waiter === undefined) messages.push(message)
      else waiter(message)
    }
  })
  const closed = new Promise<string>((resolve) =>
    ws.once('close', (code, reason) => resolve(`${code} ${reason}`.trim()))
  )
  await once(ws, 'open')
  const send = (...commands: readonly Json[]): void => ws.send(frameOf(...commands.map(withBytes)))
  const next = async (): Promise<ServerMessage> => messages.shift() ?? new Promise((resolve) => waiters.push(resolve))
  return {
    send,
    next,
    request: (command) => {
      send(command)
      return next()
    },
    closed,
    received: () => received,
    ws
  }
}

/** A client that is connected with a token as this user. */
export const connectedWithToken = async (
  t: Test,
  codec: CodecName,
  url: string,
  claims: Json = { sub: '42' },
  options: ClientOptions = {}
): Promise<CodecClient> => {
  const client = await openCodecClient(t, codec, url, options)
  await client.request({ id: 1, connect: { token: relayToken(claims) } })
  return client
}

/** Seconds since 1970, this many seconds from now. */
export const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds
