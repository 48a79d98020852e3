import type { IncomingMessage } from 'node:http'

/**
 * The relay does not speak Centrifugo's protobuf protocol: such a client receives 400 before anything is read. Clients ask
 * for it in the query, as a WebSocket subprotocol, or over HTTP with the type of the body.
 */
export const asksForProtobuf = ({ url = '', headers }: IncomingMessage): boolean => {
  if (headers['content-type']?.toLowerCase().startsWith('application/octet-stream')) return true
  if (url.includes('?') && /[?&](?:format|cf_protocol)=protobuf(?:&|$)/.test(url)) return true
  const protocols = headers['sec-websocket-protocol']
  if (protocols === undefined) return false
  const offered = protocols.split(',').map((name) => name.trim())
  return offered.includes('centrifuge-protobuf') && !offered.includes('centrifuge-json')
}
