import { secretKey, signJwt } from '../shared/jwt.js'

export interface NegotiateOptions {
  /** The id of the signed-in user. */
  readonly user: string
  /** The relay's address for browsers, such as `wss://app.example.com/connection/websocket`. */
  readonly url: string
  /** `REALTIME_HMAC_SECRET` of the relay. */
  readonly secret: string
  /** Lifetime of the token in seconds. */
  readonly expiresIn?: number
  /** Channels to subscribe to without a request of the web application. */
  readonly channels?: readonly string[]
  /** JSON that other clients see in presence. */
  readonly info?: unknown
}

export interface NegotiateResponse {
  readonly success: true
  readonly data: { readonly url: string; readonly token: string; readonly expiresIn: number }
}

const HOUR_SECONDS = 3600

/** The body of the response to `/api/negotiate`: the relay's address and a relay token of the user. */
export const negotiate = ({
  user,
  url,
  secret,
  expiresIn = HOUR_SECONDS,
  channels,
  info
}: NegotiateOptions): NegotiateResponse => {
  // An empty user would be an anonymous connection, and an empty key can be guessed by anyone. Backends in JavaScript may pass
  // the number of a user, which the relay rejects, or a variable that is not set.
  for (const [name, value] of Object.entries({ user, url, secret })) {
    if (typeof value !== 'string' || value === '') throw new TypeError(`${name} must be a text that is not empty`)
  }
  const claims = { sub: user, ...(channels !== undefined && { channels }), ...(info !== undefined && { info }) }
  const token = signJwt(claims, secretKey(secret), { lifetimeSeconds: expiresIn })
  return { success: true, data: { url, token, expiresIn } }
}
