import protobuf from 'protobufjs/light.js'
import { isObject } from '../../shared/is-object.js'
import {
  type Codec,
  type ConnectReply,
  MAP_REPLY_TYPE,
  type MessageParts,
  PONG,
  type Push,
  type RawCommand,
  type RepliedMethod,
  type Replies,
  type SentPublication,
  type SubscribeReply
} from '../core/codec/codec.js'
import { LazyJsonObject } from '../core/codec/json-members.js'
import { encodedOnce, hasSharedList, isSharedList, partsOf, toBuffer } from '../core/codec/message-parts.js'
import type { Payload, Publication } from '../core/publication.js'
import { descriptor } from './descriptor.js'

// The messages are described in protocol.proto. protobufjs compiles an encoder and a decoder for each of them; a field with
// its default value is not written.

const { Reader, Root, Type, Writer } = protobuf

const root = Root.fromJSON(descriptor)
const CommandType = root.lookupType('Command')
const ReplyType = root.lookupType('Reply')
const SubscribeResultType = root.lookupType('SubscribeResult')
const EmulationType = root.lookupType('EmulationRequest')

/** A message as protobufjs expects it: fields by name, payloads as bytes. */
type Fields = Readonly<Record<string, unknown>>

const EMPTY = Buffer.alloc(0)

const encode = (reply: Fields): Buffer => {
  const bytes = ReplyType.encodeDelimited(reply).finish()
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes)
}

/** Client info is stored as JSON text. Its two payloads are copied as they are. */
const clientInfoFields = (text: string): Fields => {
  const json = Buffer.from(text)
  const info = LazyJsonObject.at(json, 0)
  const payload = (name: string): Buffer | null => {
    const range = info?.range(name) ?? null
    return range === null ? null : json.subarray(range.start, range.end)
  }
  return {
    user: info?.value('user'),
    client: info?.value('client'),
    conn_info: payload('conn_info'),
    chan_info: payload('chan_info')
  }
}

const tagFields = (text: string): Fields => {
  const tags: unknown = JSON.parse(text)
  return isObject(tags) ? tags : {}
}

const publicationFields = (
  { info, tags, offset, version, key, removed }: Publication,
  epoch: string,
  data: Payload,
  isDelta: boolean
): Fields => ({
  data: removed ? null : toBuffer(data),
  info: info === null ? null : clientInfoFields(info),
  offset,
  tags: tags === null ? null : tagFields(tags),
  delta: isDelta,
  version: key === undefined ? version : 0,
  key: key ?? '',
  removed: removed ?? false,
  // A client that subscribed before the stream began learns the epoch from its first publication.
  epoch: offset === 1 ? epoch : ''
})

/** Replies have the epoch themselves. */
const repliedPublicationFields = ({ publication, data, isDelta }: SentPublication): Fields =>
  publicationFields(publication, '', data, isDelta)

const pushedPublicationFields = ({ publication, epoch, data, isDelta }: SentPublication): Fields =>
  publicationFields(publication, epoch, data, isDelta)

const mapFields = <Value>(map: ReadonlyMap<string, Value>, fieldsOf: (value: Value) => Fields): Fields =>
  Object.fromEntries([...map].map(([key, value]) => [key, fieldsOf(value)]))

// Without a spread: the object would get slow properties, and encoding it would take ten times as long.
const connectFields = (reply: ConnectReply): Fields => ({
  client: reply.client,
  version: reply.version,
  expires: reply.ttl > 0,
  ttl: reply.ttl,
  data: reply.data === null ? null : toBuffer(reply.data),
  subs: reply.subs.size === 0 ? null : mapFields(reply.subs, subscribeResultFields),
  ping: reply.ping,
  pong: reply.pong,
  session: reply.session,
  node: reply.node,
  time: reply.time
})

const subscribeResultFields = (reply: SubscribeReply): Fields => ({
  expires: reply.ttl > 0,
  ttl: reply.ttl,
  recoverable: reply.recoverable,
  epoch: reply.position.epoch,
  publications: reply.publications.map(repliedPublicationFields),
  recovered: reply.recovered,
  offset: reply.position.offset,
  positioned: reply.positioned,
  data: reply.data === null ? null : toBuffer(reply.data),
  was_recovering: reply.wasRecovering,
  delta: reply.delta,
  type: reply.map === null ? 0 : MAP_REPLY_TYPE,
  phase: reply.map?.phase ?? 0,
  cursor: reply.map?.cursor ?? '',
  state: reply.map?.state.map(repliedPublicationFields) ?? []
})

/** Fewer fields than the reply to a subscribe command. */
const subscribePushFields = ({ recoverable, positioned, position, data }: SubscribeReply): Fields => ({
  recoverable,
  positioned,
  epoch: position.epoch,
  offset: position.offset,
  data: data === null ? null : toBuffer(data)
})

const NO_FIELDS: Fields = {}
const noFields = (): Fields => NO_FIELDS

const RESULT_FIELDS: { readonly [M in RepliedMethod]: (result: Replies[M]) => Fields } = {
  connect: connectFields,
  subscribe: subscribeResultFields,
  unsubscribe: noFields,
  publish: noFields,
  presence: ({ presence }) => ({ presence: mapFields(presence, clientInfoFields) }),
  presence_stats: ({ clients, users }) => ({ num_clients: clients, num_users: users }),
  history: ({ publications, epoch, offset }) => ({
    publications: publications.map((each) => publicationFields(each, '', each.data, false)),
    epoch,
    offset
  }),
  rpc: ({ data }) => ({ data: data === null ? null : toBuffer(data) }),
  refresh: ({ client, ttl }) => ({ client, expires: ttl > 0, ttl }),
  sub_refresh: ({ ttl }) => ({ expires: ttl > 0, ttl })
}

/** A subscribe result with publications only. */
const publicationListBytes = encodedOnce((publications) =>
  SubscribeResultType.encode({ publications: publications.map(repliedPublicationFields) }).finish()
)

/** A subscribe result with entries of a map only. */
const stateBytes = encodedOnce((state) =>
  SubscribeResultType.encode({ state: state.map(repliedPublicationFields) }).finish()
)

/** The number of the field, and the wire type of messages. */
const SUBSCRIBE_TAG = (descriptor.nested.Reply.fields.subscribe.id << 3) | 2

/** A reply with the bytes of a shared list at its end: the fields of a message may have any order. */
const subscribeParts = (id: number, reply: SubscribeReply): MessageParts => {
  const { publications, map } = reply
  const isState = map !== null && isSharedList(map.state)
  const list = isState ? stateBytes(map.state) : publicationListBytes(publications)
  const others = isState ? { ...reply, map: { ...map, state: [] } } : { ...reply, publications: [] }
  const fields = SubscribeResultType.encode(subscribeResultFields(others)).finish()
  const resultLength = fields.length + list.length
  const start = ReplyType.encode({ id }).uint32(SUBSCRIBE_TAG).uint32(resultLength).finish()
  const length = Writer.create()
    .uint32(start.length + resultLength)
    .finish()
  return [Buffer.concat([length, start, fields]), list]
}

/** Each returns null if nothing of the reply is worth sharing. */
const PARTS_ENCODERS: { readonly [M in RepliedMethod]?: (id: number, result: Replies[M]) => MessageParts | null } = {
  subscribe: (id, reply) => (hasSharedList(reply) ? subscribeParts(id, reply) : null)
}

const pushFields = (push: Push): Fields => {
  switch (push.kind) {
    case 'pub':
      return { channel: push.channel, pub: pushedPublicationFields(push.pub) }
    case 'join':
    case 'leave':
      return { channel: push.channel, [push.kind]: { info: clientInfoFields(push.info) } }
    case 'unsubscribe':
      return { channel: push.channel, unsubscribe: push.unsubscribe }
    case 'subscribe':
      return { channel: push.channel, subscribe: subscribePushFields(push.subscribe) }
    case 'refresh':
      return { refresh: RESULT_FIELDS.refresh(push.refresh) }
    case 'disconnect':
      return { disconnect: push.disconnect }
  }
}

/** Splits a frame at the lengths in front of its messages. A frame contains at most one empty message after another. */
const split = (frame: Buffer): readonly Buffer[] | null => {
  const reader = Reader.create(frame)
  const messages: Buffer[] = []
  let previous: Buffer | null = null
  try {
    while (reader.pos < frame.length) {
      const length = reader.size()
      const message = frame.subarray(reader.pos, reader.pos + length)
      // Without the second rule, a frame of zeros would become as many buffers as it has bytes.
      if (message.length < length || (length === 0 && previous?.length === 0)) return null
      messages.push(message)
      previous = message
      reader.pos += length
    }
  } catch {
    return null
  }
  return messages.length === 0 ? null : messages
}

/** 64-bit integers as numbers. One above 2^53 loses digits, and is then rejected with the command. */
const CONVERSION: protobuf.IConversionOptions = { longs: Number }

/** Fields that are not in the message are missing. Null for bytes that are not such a message. */
const decodeMessage = (type: protobuf.Type, bytes: Buffer): RawCommand | null => {
  try {
    const reader = Reader.create(bytes)
    reader.discardUnknown = false
    const message = type.decode(reader)
    return hasMistypedField(type, message) ? null : type.toObject(message, CONVERSION)
  } catch {
    return null
  }
}

/** The fields of a type that contain messages. */
const messageFields = new Map<protobuf.Type, readonly protobuf.Field[]>()

const messageFieldsOf = (type: protobuf.Type): readonly protobuf.Field[] => {
  const known = messageFields.get(type)
  if (known !== undefined) return known
  const fields = type.fieldsArray.filter(({ resolvedType }) => resolvedType instanceof Type)
  messageFields.set(type, fields)
  return fields
}

/**
 * Whether a message has a known field with the wire type of another kind of field. The decoder treats it as unknown, which
 * would let a damaged command run with the default value.
 */
const hasMistypedField = (type: protobuf.Type, message: unknown): boolean => {
  if (!isObject(message)) return false
  const { $unknowns: unknowns } = message
  if (Array.isArray(unknowns) && unknowns.some((field) => type.fieldsById[fieldNumber(field)] !== undefined))
    return true
  return messageFieldsOf(type).some(({ name, map, repeated, resolvedType }) => {
    const value = message[name]
    if (!(resolvedType instanceof Type) || value === null || value === undefined) return false
    const messages = Array.isArray(value) && repeated ? value : map && isObject(value) ? Object.values(value) : [value]
    return messages.some((each) => hasMistypedField(resolvedType, each))
  })
}

const fieldNumber = (field: Uint8Array): number => Reader.create(field).tag() >>> 3

export interface BinaryEmulation {
  readonly node: string
  readonly session: string
  readonly data: Buffer
}

/** The body of `POST /emulation` with protobuf; null if it is malformed. */
export const decodeEmulation = (body: Buffer): BinaryEmulation | null => {
  const message = decodeMessage(EmulationType, body)
  if (message === null) return null
  const { node, session, data } = message
  if (typeof node !== 'string' || typeof session !== 'string') return null
  return { node, session, data: Buffer.isBuffer(data) ? data : EMPTY }
}

/** Messages with their length in front. An empty message is a ping or a pong. */
export const protobufCodec: Codec = {
  name: 'protobuf',
  allowsBinary: true,
  ping: Buffer.from([0]),
  split: (frame) => split(toBuffer(frame)),
  isPongFrame: (frame) => frame.length === 1 && frame[0] === 0,
  decode: (command) => (command.length === 0 ? PONG : decodeMessage(CommandType, toBuffer(command))),
  commandData: (_command, _method, request) => {
    const data = isObject(request) ? request.data : null
    // Copied, because a stored publication would otherwise keep the whole frame in memory.
    return Buffer.isBuffer(data) && data.length > 0 ? Buffer.from(data) : null
  },
  reply: (id, method, result) =>
    PARTS_ENCODERS[method]?.(id, result) ?? encode({ id, [method]: RESULT_FIELDS[method](result) }),
  errorReply: (id, { code, message, temporary }) => encode({ id, error: { code, message, temporary } }),
  push: (push) => encode({ push: pushFields(push) }),
  publicationEncoder: (channel) => (publication, epoch, data, isDelta) =>
    encode({ push: { channel, pub: publicationFields(publication, epoch, data, isDelta) } }),
  deltaData: (data) => data,
  join: (messages) => Buffer.concat(messages.flatMap(partsOf))
}
