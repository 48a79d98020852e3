import protobuf from 'protobufjs/light.js'
import { descriptor } from '../../src/relay/protobuf/descriptor.js'

/** A position in the stream of a channel. */
export interface Since {
  readonly epoch: string
  readonly offset: number
}

/** The content of the messages with which a client subscribes. */
export interface Subscribe {
  readonly token: string
  readonly channel: string
  /** Only for the JSON protocol of the relay. */
  readonly since?: Since | undefined
}

/** How a client of a server's protocol subscribes. Messages are strings with one character per byte. */
export interface Dialect {
  readonly path: string
  /** Whether messages are binary frames. */
  readonly isBinary: boolean
  /** The first message of the client; null if the server sends the first one. */
  readonly greeting: (subscribe: Subscribe) => string | null
  /** The response to a message until the client is subscribed; `true` when it is; null for no response. */
  readonly reply: (message: string, subscribe: Subscribe) => string | true | null
  /** The server's ping and the client's response. */
  readonly ping: string
  readonly pong: string
}

const centrifugo: Dialect = {
  path: '/connection/websocket',
  isBinary: false,
  greeting: ({ token, channel, since }) => {
    const recover = since === undefined ? '' : `,"recover":true,"epoch":"${since.epoch}","offset":${since.offset}`
    return `{"connect":{"token":"${token}","name":"js"},"id":1}\n{"subscribe":{"channel":"${channel}","flag":1${recover}},"id":2}`
  },
  reply: (message, { since }) => {
    if (message.includes('"error"')) throw new Error(`rejected: ${message}`)
    if (!message.includes('"id":2,"subscribe":')) return null
    if (since !== undefined && !message.includes('"recovered":true')) throw new Error(`not recovered: ${message}`)
    return true
  },
  ping: '{}',
  pong: '{}'
}

const Command = protobuf.Root.fromJSON(descriptor).lookupType('Command')

/** A command with its length in front. */
const commandText = (command: object): string =>
  Buffer.from(Command.encodeDelimited(command).finish()).toString('latin1')

const centrifugoProtobuf: Dialect = {
  path: '/connection/websocket?format=protobuf',
  isBinary: true,
  greeting: ({ token, channel }) =>
    commandText({ id: 1, connect: { token, name: 'js' } }) + commandText({ id: 2, subscribe: { channel, flag: 1 } }),
  reply: (message) => {
    // Field 1 is the id, field 2 an error, field 6 the result of subscribe.
    if (message.includes('\x08\x01\x12') || message.includes('\x08\x02\x12')) throw new Error(`rejected: ${message}`)
    return message.includes('\x08\x02\x32') ? true : null
  },
  ping: '\0',
  pong: '\0'
}

const socketIo: Dialect = {
  path: '/socket.io/?EIO=4&transport=websocket',
  isBinary: false,
  greeting: () => null,
  reply: (message, { token, channel }) => {
    if (message.startsWith('0{')) return `40{"token":"${token}"}`
    if (message.startsWith('40')) return `420["subscribe","${channel}"]`
    if (message.startsWith('44')) throw new Error(`rejected: ${message}`)
    return message.startsWith('430') ? true : null
  },
  ping: '2',
  pong: '3'
}

export const DIALECTS = { centrifugo, centrifugoProtobuf, socketIo } as const
export type DialectName = keyof typeof DIALECTS
