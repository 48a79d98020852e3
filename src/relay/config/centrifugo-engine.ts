import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../shared/is-object.js'

// Centrifugo can store streams, presence and maps at different places, and has an option for each part of an address. The
// relay has one engine, whose options are one address.

type Section = Readonly<Record<string, unknown>>

const isOn = (value: unknown): boolean => value === true || value === 1 || /^(?:1|t|true)$/i.test(String(value))

/** The names of the sections that select Redis beside `engine`. Maps have no switch. */
const partsInRedis = (file: Section): readonly string[] =>
  ['broker', 'presence_manager', 'controller', 'map_broker'].filter((name) => {
    const section = file[name]
    return isObject(section) && section.type === 'redis' && (name === 'map_broker' || isOn(section.enabled))
  })

/**
 * The file with Redis as the engine, and its address in one option, if `engine` or another section selects Redis. Sections with
 * another address than the others stay in the file, and the schema rejects them. `engine` wins over the engine of the file.
 */
export const withOneEngine = (file: unknown, engine: string | null, notes: string[]): unknown => {
  if (!isObject(file)) return file
  const own: Section = isObject(file.engine) ? file.engine : {}
  const isRedis = (engine ?? own.type) === 'redis'
  const parts = engine === null || isRedis ? partsInRedis(file) : []
  if (!isRedis && parts.length === 0) return file
  const others = parts.flatMap((name) => (isObject(file[name]) ? (file[name].redis ?? []) : []))
  const [redis = {}, ...more] = isRedis ? [own.redis ?? {}, ...others] : others
  if (!isObject(redis) || !more.every((each) => isDeepStrictEqual(each, redis))) return file
  for (const name of parts)
    if (!isRedis) notes.push(`${name} selects Redis as the engine, which stores streams, presence and maps`)
  const rest = Object.fromEntries(Object.entries(file).filter(([name]) => !parts.includes(name)))
  return { ...rest, engine: { ...own, ...(!isRedis && { type: 'redis' }), redis: withAddress(redis) } }
}

/** The options that apply to every server. */
interface Access {
  /** `user:password@` */
  readonly login: string
  readonly db: string
  readonly isTls: boolean
}

const TEXT_PARTS = ['user', 'password', 'db', 'sentinel_master_name', 'sentinel_user', 'sentinel_password'] as const
const ADDRESS_PARTS: readonly string[] = [...TEXT_PARTS, 'tls', 'sentinel_tls', 'cluster_address', 'sentinel_address']

/** The options of Redis with the parts of its address in `address`; unchanged, to be rejected, if they do not fit there. */
const withAddress = (redis: Section): Section => {
  const address = addressOf(redis)
  if (address === null) return redis
  const rest = Object.entries(redis).filter(([name]) => !ADDRESS_PARTS.includes(name) && name !== 'address')
  return Object.fromEntries(address.length === 0 ? rest : [...rest, ['address', address]])
}

const addressOf = (redis: Section): readonly string[] | null => {
  const texts = TEXT_PARTS.map((name) => textOf(redis[name]))
  const [isTls, isSentinelTls] = [switchOf(redis.tls), switchOf(redis.sentinel_tls)]
  const [servers, clusters, sentinels] = [redis.address, redis.cluster_address, redis.sentinel_address].map(listOf)
  if (texts.includes(undefined) || isTls === null || !servers || !clusters || !sentinels) return null
  const [user = '', password = '', db = '', master = '', sentinelUser = '', sentinelPassword = ''] = texts
  const login = user + password === '' ? '' : `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`
  const access = { login, db, isTls }
  // Several clusters, or masters, would share the channels.
  if (clusters.length === 1) return clusters.flatMap((list) => list.split(',')).map((each) => serverUrl(each, access))
  if (sentinels.length === 1 && master !== '' && isSentinelTls === isTls)
    return sentinels.map((list) => sentinelUrl(list, master, sentinelUser, sentinelPassword, access))
  const hasOthers = clusters.length + sentinels.length > 0 || master + sentinelUser + sentinelPassword !== ''
  if (hasOthers || isSentinelTls !== false) return null
  const isOpen = serverUrl('', access) === 'redis://'
  const urls = (servers.length === 0 && !isOpen ? [DEFAULT_SERVER] : servers).map(
    // An address in the form of the relay has all parts, or an error that is reported later.
    (each) => urlOf(each, access) ?? (isOpen ? each : null)
  )
  return urls.every((url) => url !== null) ? urls : null
}

const DEFAULT_SERVER = '127.0.0.1:6379'

/** Undefined for a value that is not a text. */
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : Number.isSafeInteger(value ?? 0) ? String(value ?? '') : undefined

/** Null if not all entries are texts. */
const listOf = (value: unknown): readonly string[] | null => {
  const entries: readonly unknown[] = [value ?? []].flat().filter((entry) => entry !== '')
  return entries.every((entry) => typeof entry === 'string') ? entries : null
}

/** Whether TLS is on; null if it has options of its own. */
const switchOf = (section: unknown): boolean | null => {
  const { enabled, ...options } = isObject(section) ? section : { enabled: false }
  if (!isObject(section) && (section ?? '') !== '') return null
  if (!isOn(enabled)) return false
  return Object.values(options).some(Boolean) ? null : true
}

const database = (db: string): string => (db === '' || db === '0' ? '' : `/${db}`)

const serverUrl = (server: string, { login, db, isTls }: Access): string =>
  `${isTls ? 'rediss' : 'redis'}://${login}${server}${database(db)}`

const sentinelUrl = (
  sentinels: string,
  master: string,
  user: string,
  password: string,
  { login, db, isTls }: Access
): string => {
  const query = new URLSearchParams({
    ...(user !== '' && { sentinel_username: user }),
    ...(password !== '' && { sentinel_password: password })
  })
  const path = `${master}${database(db)}${query.size === 0 ? '' : `?${query}`}`
  return `${isTls ? 'rediss' : 'redis'}+sentinel://${login}${sentinels}/${path}`
}

const HOST_AND_PORT = /^(?:[\w.-]+|\[[\da-f:.]+\]):\d+$/i
const URL_PARTS = /^(tcp|rediss?)(\+sentinel|\+cluster)?:\/\/([^@/]*@)?([^@/?]+)(?:\/(\d*))?(?:\?(.*))?$/

/** Parameters that tune the client of Redis. */
const TUNING = ['connect_timeout', 'io_timeout', 'force_resp2', 'replica_client_enabled']

/** An address of Centrifugo in the form of `REDIS_URL`; null for others. Its own parts win over the options. */
const urlOf = (address: string, access: Access): string | null => {
  if (HOST_AND_PORT.test(address)) return serverUrl(address, access)
  const parts = URL_PARTS.exec(address)
  if (parts === null) return null
  const [, protocol, kind = '', login = '', host = '', db = '', search] = parts
  const query = new URLSearchParams(search)
  const isTls = access.isTls || protocol === 'rediss' || isOn(query.get('tls_enabled'))
  const own = { isTls, db: db || access.db, login: login || access.login }
  const hosts = [host, ...query.getAll('addr')]
  const [master, user, password] = ['sentinel_master_name', 'sentinel_user', 'sentinel_password'].map(
    (name) => query.get(name) ?? ''
  )
  if (kind === '+sentinel') return master ? sentinelUrl(hosts.join(','), master, user ?? '', password ?? '', own) : null
  if (kind === '+cluster') return hosts.map((each) => serverUrl(each, own)).join(',')
  return [...query.keys()].every((name) => name === 'tls_enabled' || TUNING.includes(name))
    ? serverUrl(host, own)
    : null
}
