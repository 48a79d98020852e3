import { jsonFromBytes } from '../core/codec/json.js'
import { objectText, quote } from '../core/codec/json-codec.js'
import type {
  ChannelDataEvent,
  ChannelEvent,
  ConnectEvent,
  EventData,
  EventSource,
  MapPublishEvent,
  MapRemoveEvent,
  RpcEvent
} from '../core/event-proxies.js'

/** The options that decide about a body. */
export interface BodyOptions {
  readonly binaryEncoding: boolean
  readonly includeMeta: boolean
}

/** The JSON text of a request; null if the data of the client cannot be sent as JSON. */
export type Body<Event> = (event: Event, options: BodyOptions) => string | null

// Bodies are joined as text: the data of a client and the meta of a connection keep their exact spelling, including numbers that
// JavaScript cannot represent. Fields without a value are left out, except `user`: '' is an anonymous user.

export const connectBody: Body<ConnectEvent> = (event, options) => {
  const data = dataField(event.data, options)
  if (data === null) return null
  const { name, version, channels } = event
  return objectText(
    sourceFields(event, options) +
      data +
      (name === '' ? '' : `,"name":${quote(name)}`) +
      (version === '' ? '' : `,"version":${quote(version)}`) +
      (channels.length === 0 ? '' : `,"channels":[${channels.map(quote).join(',')}]`)
  )
}

export const refreshBody: Body<EventSource> = (event, options) => objectText(userFields(event, options))

export const channelBody: Body<ChannelEvent> = (event, options) =>
  objectText(`${userFields(event, options)},"channel":${quote(event.channel)}`)

export const channelDataBody: Body<ChannelDataEvent> = (event, options) => {
  const data = dataField(event.data, options)
  return data === null ? null : objectText(`${userFields(event, options)},"channel":${quote(event.channel)}${data}`)
}

export const mapPublishBody: Body<MapPublishEvent> = (event, options) => {
  const data = dataField(event.data, options)
  return data === null ? null : objectText(keyFields(event, options) + data)
}

export const mapRemoveBody: Body<MapRemoveEvent> = (event, options) => objectText(keyFields(event, options))

export const rpcBody: Body<RpcEvent> = (event, options) => {
  const data = dataField(event.data, options)
  const method = event.method === '' ? '' : `,"method":${quote(event.method)}`
  return data === null ? null : objectText(userFields(event, options) + method + data)
}

const sourceFields = ({ client, transport, protocol }: EventSource, { binaryEncoding }: BodyOptions): string =>
  `,"client":${quote(client)},"transport":"${transport}","protocol":"${protocol}","encoding":"${binaryEncoding ? 'binary' : 'json'}"`

const userFields = (event: EventSource, options: BodyOptions): string =>
  `${sourceFields(event, options)},"user":${quote(event.user)}${
    options.includeMeta && event.meta !== null ? `,"meta":${event.meta}` : ''
  }`

const keyFields = (event: MapRemoveEvent, options: BodyOptions): string =>
  `${userFields(event, options)},"channel":${quote(event.channel)}${event.key === '' ? '' : `,"key":${quote(event.key)}`}`

const dataField = (data: EventData, { binaryEncoding }: BodyOptions): string | null => {
  if (data === null || data.length === 0) return ''
  if (binaryEncoding) return `,"b64data":"${Buffer.from(data).toString('base64')}"`
  const text = typeof data === 'string' ? data : jsonFromBytes(data)
  return text === null ? null : `,"data":${text}`
}
