/** Where the gateway says that the browser ends its session at the identity provider. */
const HEADER = 'x-logout-at'

// The gateway's own. A page is sent nowhere else by an answer, whoever gave it.
const LOGOUT = /^\/auth\/oidc\/logout(?:\?|$)/

export const providerLogoutIn = ({ headers }: Response): string | null => {
  const place = headers.get(HEADER)
  return place !== null && LOGOUT.test(place) ? place : null
}
