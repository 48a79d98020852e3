/** The relay's address and a connection token. */
export interface Negotiation {
  readonly url: string
  readonly token: string
}

/** Reads a response of `/api/negotiate`: `{ success, data: { url, token, expiresIn } }`. Throws for any other. */
export const negotiationOf = (response: unknown): Negotiation => {
  // Every field is checked below.
  const { url, token } = (response as { data?: { url?: unknown; token?: unknown } | null } | null)?.data ?? {}
  if (typeof url !== 'string' || !/^wss?:\/\//i.test(url) || typeof token !== 'string' || token === '') {
    throw new Error('the response of /api/negotiate has no relay address and token')
  }
  return { url, token }
}
