import type { RpcRules } from '../core/options.js'
import { NAMESPACE_PATTERN } from './channel-schema.js'
import { type ReportError, reportIn } from './file.js'
import { type ProxyDefaults, type ProxyOptions, readProxy } from './proxy-options.js'
import type { FileProxy } from './proxy-schema.js'
import type { RelayConfigFile } from './schema.js'

/** Events that a backend is asked about; values of the metrics label `type`. */
export type ProxyEvent =
  | 'connect'
  | 'refresh'
  | 'subscribe'
  | 'publish'
  | 'sub_refresh'
  | 'map_publish'
  | 'map_remove'
  | 'rpc'
  | 'state'

export interface ProxyConfig {
  /** The proxies in use, by event and name. */
  readonly events: Readonly<Record<ProxyEvent, ReadonlyMap<string, ProxyOptions>>>
  /** Lower-case names of the headers that any proxy in use lists. Others are not kept. */
  readonly requestHeaders: readonly string[]
  readonly emulatedHeaders: readonly string[]
}

const DEFAULT_NAME = 'default'

/** The name of the proxy that an option selects; null if none is asked. */
export const proxyName = (isEnabled: boolean | undefined, name: string | undefined): string | null =>
  isEnabled ? (name ?? DEFAULT_NAME) : null

const NAME = new RegExp(NAMESPACE_PATTERN)
const NAME_RULE = 'must be two or more letters, digits, "-", "_" or "."'

/** Which proxy is asked about a method. */
export const rpcRules = ({ rpc = {} }: RelayConfigFile, report: ReportError): RpcRules => {
  const namespaceBoundary = rpc.namespace_boundary ?? ':'
  const namespaces = new Map<string, string | null>()
  for (const [index, { name = '', proxy_enabled, proxy_name }] of (rpc.namespaces ?? []).entries()) {
    const path = `rpc.namespaces[${index}].name`
    if (!NAME.test(name)) report(path, NAME_RULE)
    else if (namespaces.has(name)) report(path, 'is the name of another namespace too')
    else if (name.includes(namespaceBoundary)) report(path, 'must not contain rpc.namespace_boundary')
    namespaces.set(name, proxyName(proxy_enabled, proxy_name))
  }
  const { proxy_enabled, proxy_name } = rpc.without_namespace ?? {}
  return Object.freeze({
    withoutNamespace: proxyName(proxy_enabled, proxy_name),
    namespaces,
    namespaceBoundary,
    pingMethod: rpc.ping?.enabled ? (rpc.ping.method ?? 'ping') : null
  })
}

/** Reads all proxies of a file. One that no option enables is checked too, except for its endpoint, which may be of gRPC. */
export const proxyConfig = (file: RelayConfigFile, defaults: ProxyDefaults, report: ReportError): ProxyConfig => {
  const uses = [...usesOf(file)]
  const named = namedProxies(file, uses, defaults, report)
  const events = {
    connect: new Map<string, ProxyOptions>(),
    refresh: new Map<string, ProxyOptions>(),
    subscribe: new Map<string, ProxyOptions>(),
    publish: new Map<string, ProxyOptions>(),
    sub_refresh: new Map<string, ProxyOptions>(),
    map_publish: new Map<string, ProxyOptions>(),
    map_remove: new Map<string, ProxyOptions>(),
    rpc: new Map<string, ProxyOptions>(),
    state: new Map<string, ProxyOptions>()
  }
  for (const { event, path, proxy } of defaultProxies(file)) {
    const use = uses.find((each) => each.event === event && each.name === DEFAULT_NAME)
    const source = { ...defaults, id: path, name: DEFAULT_NAME, neededBy: use?.enabledBy ?? null }
    const options = readProxy(proxy, source, reportIn(path, report))
    if (use !== undefined) events[event].set(DEFAULT_NAME, options)
  }
  for (const { event, name, selectedBy } of uses) {
    if (name === DEFAULT_NAME) continue
    const options = named.get(name)
    if (options === undefined) report(selectedBy, 'must be default, or the name of one of proxies')
    else events[event].set(name, options)
  }
  const used = Object.values(events).flatMap((byName) => [...byName.values()])
  return Object.freeze({
    events: Object.freeze(events),
    requestHeaders: [...new Set(used.flatMap(({ httpHeaders }) => httpHeaders))],
    emulatedHeaders: [...new Set(used.flatMap(({ emulatedHeaders }) => emulatedHeaders))]
  })
}

/** A default proxy in the file. */
interface DefaultProxy {
  readonly event: ProxyEvent
  readonly path: string
  readonly proxy: FileProxy
}

const defaultProxies = ({ client = {}, channel = {}, rpc = {} }: RelayConfigFile): readonly DefaultProxy[] => [
  { event: 'connect', path: 'client.proxy.connect', proxy: client.proxy?.connect ?? {} },
  { event: 'refresh', path: 'client.proxy.refresh', proxy: client.proxy?.refresh ?? {} },
  { event: 'subscribe', path: 'channel.proxy.subscribe', proxy: channel.proxy?.subscribe ?? {} },
  { event: 'publish', path: 'channel.proxy.publish', proxy: channel.proxy?.publish ?? {} },
  { event: 'sub_refresh', path: 'channel.proxy.sub_refresh', proxy: channel.proxy?.sub_refresh ?? {} },
  { event: 'map_publish', path: 'channel.proxy.map_publish', proxy: channel.proxy?.map_publish ?? {} },
  { event: 'map_remove', path: 'channel.proxy.map_remove', proxy: channel.proxy?.map_remove ?? {} },
  { event: 'state', path: 'channel.proxy.state', proxy: channel.proxy?.state ?? {} },
  { event: 'rpc', path: 'rpc.proxy', proxy: rpc.proxy ?? {} }
]

const namedProxies = (
  { proxies = [] }: RelayConfigFile,
  uses: readonly ProxyUse[],
  defaults: ProxyDefaults,
  report: ReportError
): ReadonlyMap<string, ProxyOptions> => {
  const byName = new Map<string, ProxyOptions>()
  for (const [index, { name = '', ...proxy }] of proxies.entries()) {
    const path = `proxies[${index}]`
    if (!NAME.test(name)) report(`${path}.name`, NAME_RULE)
    else if (name === DEFAULT_NAME) report(`${path}.name`, 'must not be default, which names the default proxies')
    else if (byName.has(name)) report(`${path}.name`, 'is the name of another proxy too')
    const neededBy = uses.find((use) => use.name === name && name !== DEFAULT_NAME)?.selectedBy ?? null
    const source = { ...defaults, id: `proxies[${name}]`, name, neededBy }
    byName.set(name, readProxy(proxy, source, reportIn(path, report)))
  }
  return byName
}

/** An event that is asked about, and the options that say so. */
interface ProxyUse {
  readonly event: ProxyEvent
  readonly name: string
  readonly enabledBy: string
  readonly selectedBy: string
}

const usesOf = function* ({ client = {}, channel = {}, rpc = {} }: RelayConfigFile): Iterable<ProxyUse> {
  for (const event of ['connect', 'refresh'] as const) {
    const path = `client.proxy.${event}`
    if (client.proxy?.[event]?.enabled)
      yield { event, name: DEFAULT_NAME, enabledBy: `${path}.enabled`, selectedBy: path }
  }
  const namespaces = [
    ['channel.without_namespace', channel.without_namespace ?? {}] as const,
    ...(channel.namespaces ?? []).map((options, index) => [`channel.namespaces[${index}]`, options] as const)
  ]
  for (const [path, options] of namespaces) {
    for (const event of ['subscribe', 'publish', 'sub_refresh', 'state'] as const) {
      const [enabledBy, selectedBy] = [`${path}.${event}_proxy_enabled`, `${path}.${event}_proxy_name`]
      const name = proxyName(options[`${event}_proxy_enabled`], options[`${event}_proxy_name`])
      if (name !== null) yield { event, name, enabledBy, selectedBy }
    }
    for (const action of ['publish', 'remove'] as const) {
      const [enabledBy, selectedBy] = [`${path}.map.${action}_proxy_enabled`, `${path}.map.${action}_proxy_name`]
      const name = proxyName(options.map?.[`${action}_proxy_enabled`], options.map?.[`${action}_proxy_name`])
      if (name !== null) yield { event: `map_${action}`, name, enabledBy, selectedBy }
    }
  }
  const rpcNamespaces = [
    ['rpc.without_namespace', rpc.without_namespace ?? {}] as const,
    ...(rpc.namespaces ?? []).map((options, index) => [`rpc.namespaces[${index}]`, options] as const)
  ]
  for (const [path, options] of rpcNamespaces) {
    const name = proxyName(options.proxy_enabled, options.proxy_name)
    if (name !== null)
      yield { event: 'rpc', name, enabledBy: `${path}.proxy_enabled`, selectedBy: `${path}.proxy_name` }
  }
}
