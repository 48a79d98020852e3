import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { errorCode } from '../../shared/error-code.js'
import { HOP_BY_HOP } from '../../shared/hop-by-hop.js'
import { weaknesses } from '../../shared/secret-strength.js'
import { SIGNATURE_HEADER } from '../../shared/webhook-signature.js'
import { type Disconnect, disconnectOfBackend, MAX_REASON_BYTES, ReplyError } from '../core/codes.js'
import { type ReportError, reportIn } from './file.js'
import type { FileProxy } from './proxy-schema.js'
import { durationMs } from './schema-kinds.js'
import { FILE_SECRET_FORM } from './secrets.js'

export interface ProxyTls {
  /** PEM texts; null for none. */
  readonly ca: string | null
  readonly cert: string | null
  readonly key: string | null
  readonly serverName: string | null
  readonly isVerified: boolean
}

/** A backend that is asked about events. Names of headers are in lower case. */
export interface ProxyOptions {
  /** Where the file has it, such as `channel.proxy.subscribe`; `proxies[<name>]` for a named one. */
  readonly id: string
  /** Unique within an event: `default`, or the name in the file. */
  readonly name: string
  /** Scheme, host and port. */
  readonly origin: string
  /** Path and query, as written. */
  readonly path: string
  readonly timeoutMs: number
  readonly httpHeaders: readonly string[]
  readonly emulatedHeaders: readonly string[]
  readonly staticHeaders: ReadonlyMap<string, string>
  readonly binaryEncoding: boolean
  readonly includeMeta: boolean
  readonly statusTransforms: ReadonlyMap<number, ReplyError | Disconnect>
  /** Null for the defaults of Node.js. */
  readonly tls: ProxyTls | null
  readonly maxInFlight: number
  readonly maxQueue: number
  readonly maxResponseBytes: number
  /** The current secret and, during a rotation, the previous one. Empty: requests are not signed. */
  readonly signingSecrets: readonly string[]
}

/** The part of the configuration that all proxies have in common. */
export interface ProxyDefaults {
  readonly isProduction: boolean
  /** For proxies without secrets of their own. */
  readonly signingSecrets: readonly string[]
}

interface ProxySource extends ProxyDefaults {
  readonly id: string
  readonly name: string
  /** The option that requires an endpoint; null if the proxy is not used. */
  readonly neededBy: string | null
}

const DEFAULT_TIMEOUT = '1s'
/** Timers of Node.js end at 24 days. No client waits for an hour. */
const MAX_TIMEOUT_MS = 3_600_000
const DEFAULT_MAX_IN_FLIGHT = 128
const DEFAULT_MAX_QUEUE = 1024
const DEFAULT_RESPONSE_BYTES = 1024 * 1024

export const readProxy = (file: FileProxy, source: ProxySource, report: ReportError): ProxyOptions => {
  const timeoutMs = durationMs(file.timeout ?? DEFAULT_TIMEOUT)
  if (timeoutMs === 0 || timeoutMs > MAX_TIMEOUT_MS) report('timeout', 'must be longer than 0 and at most 1h')
  const http = file.http ?? {}
  const reportHttp = reportIn('http', report)
  const endpoint = readEndpoint(file.endpoint, source.neededBy, report)
  const staticHeaders = readStaticHeaders(http.static_headers ?? {}, reportIn('static_headers', reportHttp))
  return Object.freeze({
    id: source.id,
    name: source.name,
    origin: endpoint.origin,
    path: endpoint.path,
    timeoutMs,
    httpHeaders: readNames('http_headers', file.http_headers, report),
    emulatedHeaders: readNames('emulated_headers', file.emulated_headers, report),
    // As in other HTTP clients, a user and password in the address are a header.
    staticHeaders:
      endpoint.authorization === null
        ? staticHeaders
        : new Map([['authorization', endpoint.authorization], ...staticHeaders]),
    binaryEncoding: file.binary_encoding ?? false,
    includeMeta: file.include_connection_meta ?? false,
    statusTransforms: readTransforms(http.status_to_code_transforms ?? [], reportHttp),
    tls: readTls(http.tls ?? {}, reportIn('tls', reportHttp)),
    maxInFlight: file.max_inflight ?? DEFAULT_MAX_IN_FLIGHT,
    maxQueue: file.max_queue ?? DEFAULT_MAX_QUEUE,
    maxResponseBytes: http.max_response_size ?? DEFAULT_RESPONSE_BYTES,
    signingSecrets: readSecrets(http, source, reportHttp)
  })
}

interface Endpoint extends Pick<ProxyOptions, 'origin' | 'path'> {
  /** Value of the header; null if the address has no user. */
  readonly authorization: string | null
}

const NO_ENDPOINT: Endpoint = { origin: '', path: '', authorization: null }

/** Printable ASCII, because the address is sent as written. */
const ADDRESS = /^https?:\/\/[^/?#\s]+([/?][!-~]*)?$/i

const readEndpoint = (text: string | undefined, neededBy: string | null, report: ReportError): Endpoint => {
  if (neededBy === null) return NO_ENDPOINT
  if (text === undefined) {
    report('endpoint', `is missing, and ${neededBy} needs it`)
    return NO_ENDPOINT
  }
  if (/^grpc:/i.test(text)) {
    report('endpoint', 'must begin with http:// or https://; the relay does not speak gRPC')
    return NO_ENDPOINT
  }
  const match = ADDRESS.exec(text)
  if (match === null || text.includes('#') || !URL.canParse(text)) {
    report('endpoint', 'must be an http or https address in ASCII, without fragment')
    return NO_ENDPOINT
  }
  const url = new URL(text)
  const target = match[1] ?? '/'
  return {
    origin: url.origin,
    path: target.startsWith('/') ? target : `/${target}`,
    authorization: authorizationOf(url)
  }
}

/** The user and password of an address are percent-encoded. */
const authorizationOf = ({ username, password }: URL): string | null => {
  if (username === '' && password === '') return null
  const text = `${username}:${password}`.replace(/(?:%[\da-f]{2})+/gi, (encoded) =>
    Buffer.from(encoded.replaceAll('%', ''), 'hex').toString()
  )
  return `Basic ${Buffer.from(text).toString('base64')}`
}

const TOKEN = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/

/** Headers that belong to one connection, and those that the relay itself sets. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'content-length',
  'content-type',
  'expect',
  'host',
  SIGNATURE_HEADER.toLowerCase()
])

const nameProblem = (name: string): string | null => {
  if (!TOKEN.test(name)) return 'must be the name of a header'
  return RESERVED_HEADERS.has(name.toLowerCase()) ? 'must not be a header that the HTTP connection itself needs' : null
}

const readNames = (
  option: 'http_headers' | 'emulated_headers',
  names: readonly string[] | undefined,
  report: ReportError
): readonly string[] => {
  for (const [index, name] of (names ?? []).entries()) {
    const problem = nameProblem(name)
    if (problem !== null) report(`${option}[${index}]`, problem)
  }
  return Object.freeze([...new Set((names ?? []).map((name) => name.toLowerCase()))])
}

const readStaticHeaders = (
  headers: Readonly<Record<string, string>>,
  report: ReportError
): ReadonlyMap<string, string> => {
  for (const [name, value] of Object.entries(headers)) {
    const problem = nameProblem(name)
    if (problem !== null) report(name, problem)
    if (/[^\t\x20-\x7e\x80-\u{10ffff}]/u.test(value))
      report(name, 'must not contain line breaks and control characters')
  }
  return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), utf8AsLatin1(value)]))
}

/** HTTP clients of JavaScript send one byte for each character. */
const utf8AsLatin1 = (text: string): string => Buffer.from(text).toString('latin1')

type FileTransforms = NonNullable<NonNullable<FileProxy['http']>['status_to_code_transforms']>

const readTransforms = (file: FileTransforms, report: ReportError): ProxyOptions['statusTransforms'] => {
  const transforms = new Map<number, ReplyError | Disconnect>()
  for (const [index, { status_code: status, to_error: error = {}, to_disconnect: disconnect = {} }] of file.entries()) {
    const path = `status_to_code_transforms[${index}]`
    const [errorCode = 0, disconnectCode = 0] = [error.code, disconnect.code]
    if (status === undefined) report(`${path}.status_code`, 'is missing')
    if ((errorCode === 0) === (disconnectCode === 0))
      report(path, 'must have the code of either to_error or to_disconnect')
    checkText(`${path}.to_error.message`, error.message, report)
    checkText(`${path}.to_disconnect.reason`, disconnect.reason, report)
    const target =
      errorCode === 0
        ? disconnectOfBackend(disconnectCode, disconnect.reason ?? '')
        : new ReplyError(errorCode, error.message ?? '', error.temporary ?? false)
    if (disconnectCode !== 0 && 'reason' in target && target.code !== disconnectCode)
      report(`${path}.to_disconnect.code`, 'must be 1000, or from 3000 to 4999')
    if (status !== undefined) transforms.set(status, target)
  }
  return transforms
}

const checkText = (path: string, text: string | undefined, report: ReportError): void => {
  if (text !== undefined && !(/^[ -~]*$/.test(text) && text.length <= MAX_REASON_BYTES))
    report(path, `must be ASCII text of at most ${MAX_REASON_BYTES} bytes`)
}

type FileTls = NonNullable<NonNullable<FileProxy['http']>['tls']>

const readTls = (file: FileTls, report: ReportError): ProxyTls | null => {
  if (!file.enabled) return null
  const ca = readPem('server_ca_pem', file.server_ca_pem, report)
  const cert = readPem('cert_pem', file.cert_pem, report)
  const key = readPem('key_pem', file.key_pem, report)
  if (file.cert_pem === undefined && file.key_pem !== undefined) report('cert_pem', 'is needed together with key_pem')
  if (file.key_pem === undefined && file.cert_pem !== undefined) report('key_pem', 'is needed together with cert_pem')
  if (ca !== null) checkUsable('server_ca_pem', () => new X509Certificate(ca), report)
  if (cert !== null && key !== null) checkUsable('cert_pem', () => createSecureContext({ cert, key }), report)
  const serverName = file.server_name ?? null
  return Object.freeze({ ca, cert, key, serverName, isVerified: !file.insecure_skip_verify })
}

const checkUsable = (option: string, use: () => unknown, report: ReportError): void => {
  try {
    use()
  } catch (error) {
    report(option, `cannot be used (${errorCode(error) || 'invalid'})`)
  }
}

const PEM_MARK = '-----BEGIN'

/** As in Centrifugo: PEM text, the same in base64, or a path. */
const readPem = (option: string, text: string | undefined, report: ReportError): string | null => {
  if (text === undefined) return null
  if (text.includes(PEM_MARK)) return text
  const decoded = Buffer.from(text, 'base64').toString()
  if (decoded.includes(PEM_MARK)) return decoded
  try {
    const content = readFileSync(text, 'utf8')
    if (content.includes(PEM_MARK)) return content
    report(option, 'must be PEM text, the same in base64, or the path of a PEM file')
  } catch (error) {
    report(option, `must be PEM text, the same in base64, or the path of a readable PEM file (${errorCode(error)})`)
  }
  return null
}

const readSecrets = (
  { signing_secret: current, signing_secret_previous: previous }: NonNullable<FileProxy['http']>,
  { isProduction, signingSecrets }: ProxyDefaults,
  report: ReportError
): readonly string[] => {
  if (current === undefined) {
    if (previous !== undefined) report('signing_secret', 'is needed with signing_secret_previous')
    return signingSecrets
  }
  const secrets = Object.entries({ signing_secret: current, signing_secret_previous: previous })
  return Object.freeze(
    secrets.flatMap(([option, secret]) => {
      if (secret === undefined) return []
      if (isProduction)
        for (const line of weaknesses(option, secret, FILE_SECRET_FORM)) report(option, line.slice(option.length + 1))
      return [secret]
    })
  )
}
