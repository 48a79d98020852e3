import { once } from 'node:events'
import type { Test } from 'tap'
import { type ClientOptions, WebSocket } from 'ws'
import { relayToken } from './relay-rules.js'
import type { ServerMessage } from './server-message.js'

export type Json = Readonly<Record<string, unknown>>

/** A WebSocket that sends given messages and stores received ones. */
export class RawClient {
  readonly ws: WebSocket
  readonly #received: ServerMessage[] = []
  readonly #waiters: ((message: ServerMessage) => void)[] = []
  /** `3501 bad request`. */
  readonly closed: Promise<string>

  constructor(url: string, options: ClientOptions = {}) {
    this.ws = new WebSocket(webSocketUrl(url), options)
    this.ws.on('error', () => undefined)
    this.ws.on('message', (data) => {
      for (const line of data.toString().split('\n')) this.#receive(JSON.parse(line))
    })
    this.closed = new Promise((resolve) => this.ws.once('close', (code, reason) => resolve(`${code} ${reason}`.trim())))
  }

  send(...commands: readonly (Json | string)[]): void {
    this.ws.send(commands.map((each) => (typeof each === 'string' ? each : JSON.stringify(each))).join('\n'))
  }

  next(): Promise<ServerMessage> {
    const message = this.#received.shift()
    return message !== undefined ? Promise.resolve(message) : new Promise((resolve) => this.#waiters.push(resolve))
  }

  async request(command: Json): Promise<ServerMessage> {
    this.send(command)
    return this.next()
  }

  #receive(message: ServerMessage): void {
    const wait = this.#waiters.shift()
    if (wait === undefined) this.#received.push(message)
    else wait(message)
  }
}

export const openClient = async (t: Test, url: string, options: ClientOptions = {}): Promise<RawClient> => {
  const client = new RawClient(url, options)
  t.teardown(() => client.ws.terminate())
  await once(client.ws, 'open')
  return client
}

/** A client that is connected as this user. */
export const connectedClient = async (
  t: Test,
  url: string,
  user = '42',
  options: ClientOptions = {}
): Promise<RawClient> => {
  const client = await openClient(t, url, options)
  await client.request({ id: 1, connect: { token: relayToken({ sub: user }) } })
  return client
}

/** Adds the default path to an address without one. */
const webSocketUrl = (url: string): string => {
  const target = new URL(url.replace('http', 'ws'))
  if (target.pathname === '/') target.pathname = '/connection/websocket'
  return target.href
}
