import type { Span } from '../../shared/tracing.js'
import { SIGNATURE_HEADER, signBody } from '../../shared/webhook-signature.js'
import type { ProxyOptions } from '../config/proxy-options.js'
import type { ClientHeaders, EventSource } from '../core/event-proxies.js'

type HeaderOptions = Pick<ProxyOptions, 'httpHeaders' | 'emulatedHeaders' | 'staticHeaders'>
type HeaderSource = Pick<EventSource, 'requestHeaders' | 'emulatedHeaders'>

/** Characters that a value on the wire cannot have, such as line breaks. */
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/

/**
 * Names and values in turn. Of a client only listed headers: those of its HTTP request win over those of its connect command,
 * which win over the static ones. Null if a value cannot be sent.
 */
export const requestHeaders = (options: HeaderOptions, source: HeaderSource, span: Span | null): string[] | null => {
  const values = new Map<string, readonly string[]>()
  for (const [name, value] of options.staticHeaders) values.set(name, [value])
  // The text of a command is Unicode; Node.js decodes the headers of a request as Latin-1, and sends them so.
  copyListed(options.emulatedHeaders, source.emulatedHeaders, values, (value) => Buffer.from(value).toString('latin1'))
  copyListed(options.httpHeaders, source.requestHeaders, values, (value) => value)
  const traceHeaders = span?.headers ?? []
  for (let index = 0; index < traceHeaders.length; index += 2) values.delete(traceHeaders[index] ?? '')
  const headers = ['content-type', 'application/json', ...traceHeaders]
  for (const [name, list] of values) {
    for (const value of list) {
      if (UNSENDABLE.test(value)) return null
      headers.push(name, value)
    }
  }
  return headers
}

const copyListed = (
  names: readonly string[],
  headers: ClientHeaders | null,
  into: Map<string, readonly string[]>,
  encode: (value: string) => string
): void => {
  if (headers === null) return
  for (const name of names) {
    const values = Object.hasOwn(headers, name) ? headers[name] : undefined
    if (values !== undefined && values.length > 0) into.set(name, values.map(encode))
  }
}

/** Empty without a secret. */
export const signatureHeaders = (body: string, secrets: readonly string[], nowMs: number): readonly string[] =>
  secrets.length === 0 ? [] : [SIGNATURE_HEADER, signBody(body, secrets, nowMs)]
