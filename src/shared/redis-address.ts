import { isIP } from 'node:net'
import type { RedisOptions } from 'ioredis'

interface HostAndPort {
  readonly host: string
  readonly port: number
}

interface Access {
  readonly username: string
  readonly password: string
  readonly db: number
  readonly isTls: boolean
}

/** One Redis server. */
export interface RedisServer extends HostAndPort, Access {
  readonly kind: 'server'
}

/** The server that is the master at present, according to Redis Sentinel. */
export interface SentinelMaster extends Access {
  readonly kind: 'sentinel'
  readonly masterName: string
  readonly sentinels: readonly HostAndPort[]
  /** The credentials of the sentinels; those of the server are `username` and `password`. */
  readonly sentinelUsername: string
  readonly sentinelPassword: string
}

export type RedisAddress = RedisServer | SentinelMaster

export const REDIS_URL_RULE =
  'an address such as redis://host:6379, a comma list of them, or redis+sentinel://host:26379,host:26379/master-name'

const REDIS_PORT = 6379
const SENTINEL_PORT = 26_379
const MAX_DATABASE_DIGITS = 5

/** Contains no part of the address, which may hold a password. */
class AddressError extends Error {}

/** Several servers share the channels of a relay or belong to one Redis Cluster. A Sentinel address is always the only one. */
export const parseRedisUrl = (text: string): readonly RedisAddress[] =>
  SENTINEL_SCHEME.test(text.trim())
    ? [parseSentinelUrl(text.trim())]
    : text
        .split(',')
        .map((entry) => entry.trim())
        .map(parseServerUrl)

/** The reason why the address is invalid, or null if it is valid. */
export const redisUrlError = (text: string): string | null => {
  try {
    parseRedisUrl(text)
    return null
  } catch (error) {
    if (!(error instanceof AddressError)) throw error
    return error.message
  }
}

const parseServerUrl = (text: string): RedisServer => {
  if (SENTINEL_SCHEME.test(text)) throw new AddressError('a Sentinel address cannot be part of a list')
  if (!/^rediss?:\/\//.test(text)) throw new AddressError('it must begin with redis://, rediss:// or redis+sentinel://')
  const { protocol, username, password, pathname, search, hash } = parseUrl(text)
  // They would be ignored.
  if (search !== '' || hash !== '') throw new AddressError('a query or fragment is not supported')
  return {
    kind: 'server',
    ...hostAndPort(text, REDIS_PORT),
    username: decode(username),
    password: decode(password),
    db: database(pathname.slice(1)),
    isTls: protocol === 'rediss:'
  }
}

const SENTINEL_SCHEME = /^rediss?\+sentinel:\/\//
const SENTINEL_URL = /^(rediss?)\+sentinel:\/\/(?:([^@:/]*)(?::([^@/]*))?@)?([^@/?#]*)(\/[^?#]*)?(\?[^#]*)?$/
const SENTINEL_QUERY = ['sentinel_username', 'sentinel_password']

/** `URL` accepts one host only, so the parts are separated here. */
const parseSentinelUrl = (text: string): SentinelMaster => {
  const parts = SENTINEL_URL.exec(text)
  if (parts === null)
    throw new AddressError('characters such as @ / : ? # in a name or password must be percent-encoded')
  const [, scheme, username = '', password = '', hosts = '', path = '', query = ''] = parts
  const [, masterName = '', db = '', ...rest] = path.split('/')
  if (!/^[\w.-]+$/.test(masterName))
    throw new AddressError('the name of the master must follow the sentinels, as in /mymaster')
  if (rest.length > 0) throw new AddressError('nothing may follow the number of the database')
  const options = new URLSearchParams(query)
  for (const name of options.keys())
    if (!SENTINEL_QUERY.includes(name) || options.getAll(name).length > 1)
      throw new AddressError(`the query may contain ${SENTINEL_QUERY.join(' and ')}, once each`)
  return {
    kind: 'sentinel',
    masterName,
    sentinels: hosts.split(',').map((host) => hostAndPort(`redis://${host.trim()}`, SENTINEL_PORT)),
    username: decode(username),
    password: decode(password),
    db: database(db),
    isTls: scheme === 'rediss',
    sentinelUsername: options.get('sentinel_username') ?? '',
    sentinelPassword: options.get('sentinel_password') ?? ''
  }
}

const parseUrl = (text: string): URL => {
  if (!URL.canParse(text)) throw new AddressError('host or port is malformed')
  return new URL(text)
}

const hostAndPort = (url: string, defaultPort: number): HostAndPort => {
  const { hostname, port } = parseUrl(url)
  if (hostname === '') throw new AddressError('a host is missing')
  // An IPv6 address has brackets in a URL only.
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? defaultPort : Number(port) }
}

const database = (text: string): number => {
  if (!/^\d*$/.test(text) || text.length > MAX_DATABASE_DIGITS)
    throw new AddressError('the path must be the number of a database')
  return Number(text)
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new AddressError('a percent sign in a name or password must be written as %25')
  }
}

const hostText = ({ host, port }: HostAndPort): string => `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
const databasePath = (db: number): string => (db === 0 ? '' : `/${db}`)

/** Identifies a server in logs, and in the hash ring of the relay. Contains no secrets. */
export const addressName = (address: RedisAddress): string =>
  `${address.kind === 'server' ? `${address.host}:${address.port}` : `sentinel/${address.masterName}`}${databasePath(address.db)}`

/** The address without credentials. */
export const redactedRedisUrl = (text: string): string =>
  parseRedisUrl(text)
    .map((address) => {
      const scheme = address.isTls ? 'rediss' : 'redis'
      if (address.kind === 'server') return `${scheme}://${hostText(address)}${databasePath(address.db)}`
      const { sentinels, masterName, db } = address
      return `${scheme}+sentinel://${sentinels.map(hostText).join(',')}/${masterName}${databasePath(db)}`
    })
    .join(',')

/** How long a sentinel may take to respond, and how long to wait before all sentinels are asked again. */
const SENTINEL_TIMEOUT_MS = 2_000
const SENTINEL_RETRY_MS = 200

/** The options of ioredis that select the server and its credentials. */
export const connectionOptions = (address: RedisAddress): Omit<RedisOptions, 'replyMapping'> => {
  const { username, password, db, isTls } = address
  const access = { db, ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) }
  if (address.kind === 'server') {
    const { host, port } = address
    // SNI is for host names only.
    return { ...access, host, port, ...(isTls ? { tls: isIP(host) === 0 ? { servername: host } : {} } : {}) }
  }
  const { masterName, sentinels, sentinelUsername, sentinelPassword } = address
  return {
    ...access,
    name: masterName,
    sentinels: sentinels.map(({ host, port }) => ({ host, port })),
    ...(sentinelUsername === '' ? {} : { sentinelUsername }),
    ...(sentinelPassword === '' ? {} : { sentinelPassword }),
    ...(isTls ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    sentinelRetryStrategy: () => SENTINEL_RETRY_MS,
    // With this check ioredis does not use a server that is a replica and asks the sentinels again.
    enableReadyCheck: true
  }
}

/** Without braces, which select the hash slot in a Redis Cluster. */
export const isRedisPrefix = (text: string): boolean => /^[-\w.:]{1,64}$/.test(text)

export const REDIS_PREFIX_RULE = 'up to 64 letters, digits, - _ . and :'
