import type { SettingValues } from '../shared/env.js'
import type { gatewaySettings } from './settings.js'

// NODE_ENV decides whether requests are authenticated.

type Values = Pick<
  SettingValues<typeof gatewaySettings>,
  'NODE_ENV' | 'GATEWAY_ALLOW_DEVELOPMENT' | 'TRUST_PROXY' | 'GATEWAY_FORWARD_AUTH'
>

/** Whether nothing is authenticated, and the operator has not said that others may rely on this gateway. */
export const isRestricted = ({ NODE_ENV, GATEWAY_ALLOW_DEVELOPMENT }: Values): boolean =>
  NODE_ENV !== null && NODE_ENV !== 'production' && !GATEWAY_ALLOW_DEVELOPMENT

/** For settings with which the gateway vouches for users, or serves requests of other machines. */
export const NOT_IN_DEVELOPMENT =
  'must not be set outside production, where requests are not authenticated: set NODE_ENV=production, or GATEWAY_ALLOW_DEVELOPMENT=true'

const REQUIRED =
  'NODE_ENV is required: set NODE_ENV=production, or NODE_ENV=development for a gateway on this machine that authenticates no request'

export const environmentErrors = (values: Values): string[] => {
  if (values.NODE_ENV === null) return [REQUIRED]
  if (!isRestricted(values)) return []
  const given = [
    ...(values.TRUST_PROXY.length > 0 ? ['TRUST_PROXY'] : []),
    ...(values.GATEWAY_FORWARD_AUTH ? ['GATEWAY_FORWARD_AUTH'] : [])
  ]
  return given.map((name) => `${name} ${NOT_IN_DEVELOPMENT}`)
}
