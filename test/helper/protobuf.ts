import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import protobuf from 'protobufjs'
import { ROOT } from '../../scripts/lib/root.js'
import { isObject } from '../../src/shared/is-object.js'
import type { Json } from './raw-client.js'
import type { ServerMessage } from './server-message.js'

// The client's side of the protobuf protocol, from protocol.proto itself.
const { root } = protobuf.parse(readFileSync(join(ROOT, 'src/relay/protobuf/protocol.proto'), 'utf8'), {
  keepCase: true
})
const Command = root.lookupType('Command')
const Reply = root.lookupType('Reply')
const EmulationRequest = root.lookupType('EmulationRequest')

/** One command without its length. `data` of a publish command is bytes. */
export const commandBytes = (command: Json): Buffer => Buffer.from(Command.encode(command).finish())

export const emulationBytes = (request: Json): Buffer => Buffer.from(EmulationRequest.encode(request).finish())

/** Commands with their lengths. */
export const frameOf = (...commands: readonly (Json | Buffer)[]): Buffer =>
  Buffer.concat(
    commands.flatMap((command) => {
      const bytes = Buffer.isBuffer(command) ? command : commandBytes(command)
      return [varint(bytes.length), bytes]
    })
  )

export const varint = (value: number | bigint): Buffer => {
  const bytes: number[] = []
  let rest = BigInt(value)
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128)
  bytes.push(Number(rest))
  return Buffer.from(bytes)
}

/** The replies in a frame. Payloads are parsed as JSON, fields with their default value are missing. */
export const repliesIn = (frame: Buffer): ServerMessage[] => {
  const reader = protobuf.Reader.create(frame)
  const replies: ServerMessage[] = []
  while (reader.pos < frame.length) {
    const reply = Reply.decodeDelimited(reader)
    replies.push(withParsedPayloads(Reply.toObject(reply, { longs: Number, bytes: Array })))
  }
  return replies
}

const isBytes = (value: unknown): value is number[] =>
  Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'number')

const parsePayloads = (value: unknown): unknown => {
  if (isBytes(value)) return JSON.parse(Buffer.from(value).toString())
  if (Array.isArray(value)) return value.map(parsePayloads)
  return isObject(value) ? withParsedPayloads(value) : value
}

const withParsedPayloads = (message: Json): Json =>
  Object.fromEntries(Object.entries(message).map(([name, value]) => [name, parsePayloads(value)]))
