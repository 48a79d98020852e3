/** Where the relay is, and what lets this page in for a while. */
export interface Negotiation {
  readonly url: string
  readonly token: string
}

/** The answer of `/api/negotiate`: `{ success, data: { url, token, expiresIn } }`. Throws where it is another. */
export const negotiationOf = (answer: unknown): Negotiation => {
  const { url, token } = (answer as { data?: { url?: unknown; token?: unknown } | null } | null)?.data ?? {}
  if (typeof url !== 'string' || !/^wss?:\/\//i.test(url) || typeof token !== 'string' || token === '') {
    throw new Error('the answer of /api/negotiate holds no address of a relay and no token')
  }
  return { url, token }
}
