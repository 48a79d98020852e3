/** How a client of a server's protocol subscribes. */
export interface Dialect {
  readonly path: string
  /** The first message of the client; null if the server sends the first one. */
  readonly greeting: (token: string, channel: string) => string | null
  /** The response to a message until the client is subscribed; `true` when it is; null for no response. */
  readonly reply: (message: string, token: string, channel: string) => string | true | null
  /** The server's ping and the client's response. */
  readonly ping: string
  readonly pong: string
}

const centrifugo: Dialect = {
  path: '/connection/websocket',
  greeting: (token, channel) =>
    `{"connect":{"token":"${token}","name":"js"},"id":1}\n{"subscribe":{"channel":"${channel}","flag":1},"id":2}`,
  reply: (message) => {
    if (message.includes('"error"')) throw new Error(`rejected: ${message}`)
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
    if (message.startsWith('44')) throw new Error(`rejected: ${message}`)
    return message.startsWith('430') ? true : null
  },
  ping: '2',
  pong: '3'
}

export const DIALECTS = { centrifugo, socketIo } as const
export type DialectName = keyof typeof DIALECTS
