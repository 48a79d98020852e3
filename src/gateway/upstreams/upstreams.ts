import { createHmac } from 'node:crypto'
import { SettingsError } from '../../shared/env.js'
import { AddressSet } from '../../shared/ip-address.js'
import type { GatewayConfig } from '../config.js'
import { type OpenUpstreamsOptions, openUpstreams } from './open-upstreams.js'
import { selfReferences } from './self-references.js'
import type { Upstream } from './upstream.js'
import { UpstreamSelector } from './upstream-selector.js'

/** The rows of a gateway. */
export interface Upstreams {
  readonly rows: readonly Upstream[]
  readonly selector: UpstreamSelector<Upstream>
  /** `Via` of requests to the backends of rows. A request that has it already has passed this gateway. */
  readonly via: string
}

/** Throws a `SettingsError` if a row cannot be served. */
export const configuredUpstreams = async (
  config: GatewayConfig,
  { tokens, log }: Pick<OpenUpstreamsOptions, 'tokens' | 'log'>
): Promise<Upstreams> => {
  const { upstreams: rows, backend: defaults, access, limits, trustedProxies, listen } = config
  const errors = await selfReferences(rows, listen)
  if (errors.length > 0) throw new SettingsError(errors)
  const trusted = new AddressSet(trustedProxies)
  const opened = await openUpstreams({ rows, defaults, access, bodyBytes: limits.bodyBytes, tokens, log })
  return {
    rows: opened,
    selector: new UpstreamSelector(opened, (address) => trusted.has(address)),
    via: `1.1 gatehouse-${loopMark(config)}`
  }
}

/** The same for all gateways with the same rows: a loop may lead through another one of them. */
const loopMark = ({ apiSecret, upstreams }: GatewayConfig): string =>
  createHmac('sha256', apiSecret).update(JSON.stringify(upstreams)).digest('hex').slice(0, 16)
