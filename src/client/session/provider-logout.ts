/** Response header with the address that signs out at the identity provider. */
const HEADER = 'x-logout-at'

// Only the gateway's own route: a response must not redirect the page elsewhere.
const LOGOUT = /^\/auth\/oidc\/logout(?:\?|$)/

export const providerLogoutIn = ({ headers }: Response): string | null => {
  const address = headers.get(HEADER)
  return address !== null && LOGOUT.test(address) ? address : null
}
