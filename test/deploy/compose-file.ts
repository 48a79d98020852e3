import { parse } from 'yaml'
import { isObject } from '../../src/shared/is-object.js'
import { shipped } from './shipped.js'

type Texts = readonly string[]

export interface ComposeService {
  readonly image: string
  readonly build?: { readonly context: string; readonly dockerfile: string }
  readonly user?: string
  readonly command?: Texts
  readonly ports?: Texts
  readonly environment?: Readonly<Record<string, string>>
  readonly volumes?: Texts
  readonly secrets?: Texts
  readonly networks?: Texts | Readonly<Record<string, { readonly ipv4_address: string } | null>>
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: object
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>
  readonly networks: Readonly<
    Record<
      string,
      {
        readonly internal: boolean
        readonly ipam: { readonly config: readonly { readonly subnet: string; readonly ip_range: string }[] }
      } | null
    >
  >
  readonly volumes: Readonly<Record<string, null>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
}

/** The keys of the compose format that docker-compose.yml uses, so that misspellings are found. */
const SERVICE_KEYS = new Set([
  ...['image', 'build', 'profiles', 'restart', 'read_only', 'cap_drop', 'cap_add', 'security_opt', 'logging', 'user'],
  ...['entrypoint', 'command', 'ports', 'environment', 'extra_hosts', 'volumes', 'tmpfs', 'shm_size', 'secrets'],
  ...['networks', 'network_mode', 'depends_on', 'healthcheck', 'ulimits', 'stop_grace_period', 'stop_signal', 'deploy']
])
const HEALTH_CHECK_KEYS = new Set(['disable', 'test', 'interval', 'timeout', 'retries', 'start_period'])
const LIMITS = ['cpus', 'memory', 'pids']

/** Unknown keys of services, and services without the hardening or limits that all have. */
export const composeErrors = (text: string): string[] => {
  const { services } = parse(text, { merge: true })
  return Object.entries<Record<string, unknown>>(services).flatMap(([name, service]) => {
    const { healthcheck = {}, deploy } = service
    const unknown = [
      ...Object.keys(service).filter((key) => !SERVICE_KEYS.has(key)),
      ...Object.keys(Object(healthcheck)).filter((key) => !HEALTH_CHECK_KEYS.has(key))
    ].map((key) => `${name}: unknown key ${key}`)
    const isHardened =
      service.read_only === true &&
      String(service.cap_drop) === 'ALL' &&
      String(service.security_opt) === 'no-new-privileges:true'
    const limits = isObject(deploy) ? Object.keys(Object(Object(deploy.resources).limits)) : []
    return [
      ...unknown,
      ...(isHardened ? [] : [`${name}: not hardened`]),
      ...(String(limits) === String(LIMITS) ? [] : [`${name}: limits ${limits}`])
    ]
  })
}

/** Replaces `${NAME:-default}` by the default and `$$` by `$`, as compose does without variables. */
const interpolated = (value: unknown): unknown => {
  if (typeof value === 'string') return value.replaceAll(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1').replaceAll('$$', '$')
  if (Array.isArray(value)) return value.map(interpolated)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, interpolated(inner)]))
}

// Its parts are the strings and lists that tests read; a wrong one fails them.
export const shippedCompose = (): ComposeFile =>
  interpolated(parse(shipped('docker-compose.yml'), { merge: true })) as ComposeFile

/** The fixed address of a service on each of its networks; null if it has none. */
export const networksOf = ({ networks = [] }: ComposeService): Readonly<Record<string, string | null>> =>
  Array.isArray(networks)
    ? Object.fromEntries(networks.map((name) => [name, null]))
    : Object.fromEntries(Object.entries(networks).map(([name, settings]) => [name, settings?.ipv4_address ?? null]))
