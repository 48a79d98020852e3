/** What a client says to be subscribed, and how it sees that it is. */
export interface Dialect {
  readonly path: string
  /** Sent as soon as the socket is open; null where the server speaks first. */
  readonly greeting: (token: string, channel: string) => string | null
  /** The answer to a message while the client is not subscribed yet; `true` when it is; null for nothing to say. */
  readonly reply: (message: string, token: string, channel: string) => string | true | null
  /** The server's ping, and what is said to it. */
  readonly ping: string
  readonly pong: string
}

const centrifugo: Dialect = {
  path: '/connection/websocket',
  greeting: (token, channel) =>
    `{"connect":{"token":"${token}","name":"js"},"id":1}\n{"subscribe":{"channel":"${channel}","flag":1},"id":2}`,
  reply: (message) => {
    if (message.includes('"error"')) throw new Error(`refused: ${message}`)
    return message.includes('"id":2,"subscribe":') ? true : null
  },
  ping: '{}',
  pong: '{}'
}

const socketIo: Dialect = {
  path: '/socket.io/?EIO=4&transport=websocket',
  greeting: () => null,
  reply: (message, token, channel) => {
    if (message.startsWith('0{')) return `40{"token":"${token}"}`
    if (message.startsWith('40')) return `420["subscribe","${channel}"]`
    if (message.startsWith('44')) throw new Error(`refused: ${message}`)
    return message.startsWith('430') ? true : null
  },
  ping: '2',
  pong: '3'
}

export const DIALECTS = { centrifugo, socketIo } as const
export type DialectName = keyof typeof DIALECTS
