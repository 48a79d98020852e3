import { statSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { FormatRegistry, Type } from '@sinclair/typebox'
import { isAddressRange } from './ip-address.js'
import { isOriginPattern } from './origin-pattern.js'
import { isRedisPrefix, REDIS_PREFIX_RULE, REDIS_URL_RULE, redisUrlError } from './redis-address.js'
import { toCanonicalPath } from './request-path.js'

interface About<Fallback> {
  readonly about: string
  readonly fallback: Fallback
}

type Format = keyof typeof FORMATS

/** The test of each format, and its description for error messages. */
const FORMATS = {
  text: [(text: string) => text.length > 0, 'text'],
  'header-value': [(text: string) => /^[\x21-\x7e]+$/.test(text), 'printable ASCII without blanks'],
  'web-folder': [(text: string) => isWebFolder(text), 'a folder with an index.html'],
  'http-url': [(text: string) => isHttpUrl(text), 'an http or https address without user, query or fragment'],
  'api-path': [
    (text: string) => isApiPrefix(text),
    'a path below /api such as /api/reports, without a slash at its end'
  ],
  'path-prefix': [(text: string) => isPathPrefix(text), 'a path such as /api/reports, without a slash at its end'],
  'field-name': [(text: string) => /^[A-Za-z_][\w-]*$/.test(text), 'a name of letters, digits, - and _'],
  'field-path': [(text: string) => /^[^.\s]+(?:\.[^.\s]+)*$/.test(text), 'names separated by dots, such as data.token'],
  origin: [(text: string) => isOrigin(text), 'an origin such as https://app.example.com'],
  'origin-pattern': [isOriginPattern, 'an origin such as https://app.example.com or https://*.example.com, or *'],
  'address-range': [isAddressRange, 'an address, a CIDR range or "loopback"'],
  'csp-host': [
    (text: string) => isCspHost(text),
    'a host such as cdn.example.com, *.example.com or https://cdn.example.com'
  ],
  'redis-url': [(text: string) => redisUrlError(text) === null, REDIS_URL_RULE],
  'redis-prefix': [isRedisPrefix, REDIS_PREFIX_RULE],
  'postgres-url': [
    (text: string) => isUrlOf(text, ['postgres:', 'postgresql:']),
    'an address such as postgres://host/name'
  ]
} as const satisfies Record<string, readonly [(text: string) => boolean, string]>

for (const [name, [test]] of Object.entries(FORMATS)) FormatRegistry.Set(name, test)

/** Text in a known format. */
export const text = <F>(format: Format, { about, fallback }: About<F>) => ({
  about,
  fallback,
  rule: FORMATS[format][1],
  parse: (text: string): unknown => text,
  schema: Type.String({ format }),
  // A URL may contain a password, even if the setting does not allow one.
  secret: format.endsWith('-url')
})

/** The address of Redis, in every form that both programs accept. */
export const redisUrl = <F>({ about, fallback }: About<F>) => ({
  ...text('redis-url', { about, fallback }),
  explain: redisUrlError
})

export const secret = <F>({ about, fallback }: About<F>) => ({ ...text('text', { about, fallback }), secret: true })

/** A secret that is sent in a header. */
export const headerSecret = <F>({ about, fallback }: About<F>) => ({
  ...text('header-value', { about, fallback }),
  secret: true
})

const NO_ENTRIES: readonly string[] = []

/** A comma list, by default empty. */
export const list = (format: Format, { about }: { readonly about: string }, fallback = NO_ENTRIES) => ({
  about,
  fallback,
  rule: `a comma list, each entry ${FORMATS[format][1]}`,
  parse: (text: string): unknown =>
    text
      .split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== ''),
  schema: Type.Array(Type.String({ format })),
  secret: false
})

/** A comma list of secrets: the current one first, then previous ones, which are still accepted. */
export const secrets = ({ about }: { readonly about: string }) => ({ ...list('text', { about }), secret: true })

export const integer = <F>(minimum: number, maximum: number, { about, fallback }: About<F>) => ({
  about,
  fallback,
  rule: `a whole number from ${minimum} to ${maximum}`,
  parse: (text: string): unknown => (/^\d{1,15}$/.test(text) ? Number(text) : text),
  schema: Type.Integer({ minimum, maximum }),
  secret: false
})

/** A setting of both programs. */
export const shutdownDelay = integer(0, 300_000, {
  about:
    'time between SIGTERM and the end of service, in which the health check returns 503 and requests are still served; for several instances behind a load balancer with health checks',
  fallback: 0
})

export const flag = <F>({ about, fallback }: About<F>) => ({
  about,
  fallback,
  rule: 'true or false',
  parse: (text: string): unknown => (text === 'true' ? true : text === 'false' ? false : text),
  schema: Type.Boolean(),
  secret: false
})

export const oneOf = <const Choice extends string, const F>(
  choices: readonly Choice[],
  { about, fallback }: About<F>
) => ({
  about,
  fallback,
  rule: `one of ${choices.join(', ')}`,
  parse: (text: string): unknown => text,
  schema: Type.Unsafe<Choice>(Type.Union(choices.map((choice) => Type.Literal(choice)))),
  secret: false
})

const BYTE_UNITS = { '': 1, KiB: 1024, MiB: 1024 * 1024 } as const

/** A size in bytes, KiB or MiB. */
export const byteSize = <F>(maximum: number, { about, fallback }: About<F>) => ({
  about,
  fallback,
  rule: `a size from 1 byte to ${maximum / BYTE_UNITS.MiB}MiB, in bytes or with KiB or MiB`,
  parse: (text: string): unknown => {
    const [, digits, unit] = /^(\d{1,12}) ?(KiB|MiB|)$/.exec(text) ?? []
    // The expression matches these units only.
    return digits === undefined ? text : Number(digits) * BYTE_UNITS[unit as keyof typeof BYTE_UNITS]
  },
  schema: Type.Integer({ minimum: 1, maximum }),
  secret: false,
  unit: 'bytes' as const
})

const isPathPrefix = (text: string): boolean => text === '/' || (toCanonicalPath(text) === text && !text.endsWith('/'))

const isApiPrefix = (text: string): boolean => /^\/api(?:\/|$)/.test(text) && isPathPrefix(text)

const isWebFolder = (text: string): boolean => {
  try {
    return statSync(join(text, 'index.html')).isFile()
  } catch {
    return false
  }
}

const isUrlOf = (text: string, protocols: readonly string[]): boolean =>
  URL.canParse(text) && protocols.includes(new URL(text).protocol)

const isHttpUrl = (text: string): boolean => {
  if (!isUrlOf(text, ['http:', 'https:'])) return false
  const { username, password, search, hash } = new URL(text)
  return username === '' && password === '' && search === '' && hash === '' && !/[?#\s]/.test(text)
}

/** Not a pattern: origins are compared literally, so a `*` would never match. */
const isOrigin = (text: string): boolean =>
  isHttpUrl(text) && new URL(text).origin === text.toLowerCase() && !text.includes('*')

/** Hosts become part of a header, so characters that end a directive are rejected. */
const isCspHost = (text: string): boolean => {
  const [, host] =
    /^(?:(?:https?|wss?):\/\/)?((?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(?::(?:\d{1,5}|\*))?$/i.exec(
      text
    ) ?? []
  if (host === undefined) return false
  return host.startsWith('[') ? isIP(host.slice(1, -1)) === 6 : true
}
