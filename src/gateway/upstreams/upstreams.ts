import { createHmac } from 'node:crypto'
import { AddressSet } from '../../shared/ip-address.js'
import type { AccessPaths } from '../access.js'
import { limitPrefixes, type RequestLimit } from '../limits/limits-file.js'
import type { BackendConfig } from '../proxy/backend-pool.js'
import { type OpenUpstreamsOptions, openUpstreams } from './open-upstreams.js'
import type { Upstream } from './upstream.js'
import type { UpstreamRow } from './upstream-row.js'
import { UpstreamSelector } from './upstream-selector.js'

/** The rows of a gateway. */
export interface Upstreams {
  readonly rows: readonly Upstream[]
  readonly selector: UpstreamSelector<Upstream>
  /** `Via` of requests to the backends of rows. A request that has it already has passed this gateway. */
  readonly via: string
}

/** The part of the gateway's configuration that rows depend on. */
export interface UpstreamsConfig {
  readonly upstreams: readonly UpstreamRow[]
  readonly backend: BackendConfig
  readonly access: AccessPaths
  readonly requestLimits: readonly RequestLimit[]
  readonly limits: { readonly bodyBytes: number }
  readonly trustedProxies: readonly string[]
  readonly apiSecret: string
}

/** Throws a `SettingsError` if a row cannot be served. */
export const configuredUpstreams = async (
  config: UpstreamsConfig,
  { tokens, log }: Pick<OpenUpstreamsOptions, 'tokens' | 'log'>
): Promise<Upstreams> => {
  const { upstreams: rows, backend: defaults, access, limits, trustedProxies } = config
  const trusted = new AddressSet(trustedProxies)
  const ruled = ruledPaths(config)
  const opened = await openUpstreams({ rows, defaults, access, ruled, bodyBytes: limits.bodyBytes, tokens, log })
  return {
    rows: opened,
    selector: new UpstreamSelector(opened, (address) => trusted.has(address)),
    via: `1.1 gatehouse-${loopMark(config)}`
  }
}

/** The prefixes that rules and limits of all rows begin at. */
export const ruledPaths = ({ access, requestLimits }: Pick<UpstreamsConfig, 'access' | 'requestLimits'>): string[] => [
  ...access.strict,
  ...access.admin,
  ...limitPrefixes(requestLimits)
]

/** The same for all gateways with the same rows: a loop may lead through another one of them. */
const loopMark = ({ apiSecret, upstreams }: UpstreamsConfig): string =>
  createHmac('sha256', apiSecret).update(JSON.stringify(upstreams)).digest('hex').slice(0, 16)
