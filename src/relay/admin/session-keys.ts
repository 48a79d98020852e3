import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { sameSecret } from '../../shared/same-secret.js'

/** What a session's cookie says. */
export interface SessionClaims {
  readonly id: string
  /** The browser came over https, and must not send the cookie over anything else. */
  readonly isSecure: boolean
  /** In milliseconds since 1970. */
  readonly startedAt: number
  readonly activeAt: number
}

const SHAPE = /^v1\.([A-Za-z0-9_-]{22})\.([sp])\.([0-9a-z]{1,10})\.([0-9a-z]{1,10})\.([A-Za-z0-9_-]{43})$/
const ID_BYTES = 16

export const newSessionId = (): string => randomBytes(ID_BYTES).toString('base64url')

/**
 * Signs sessions. The key comes from the password and the key of the publish API, which all nodes share: a session that one
 * node began is good at every other and after a restart, and at no other relay, nor after either of the two has changed.
 */
export class SessionKeys {
  readonly #session: Uint8Array
  readonly #csrf: Uint8Array

  constructor(password: string, relaySecret: string) {
    const key = (purpose: string): Uint8Array =>
      new Uint8Array(hkdfSync('sha256', password, relaySecret, `gatehouse relay admin ${purpose} v1`, 32))
    this.#session = key('session')
    this.#csrf = key('csrf')
  }

  sign({ id, isSecure, startedAt, activeAt }: SessionClaims): string {
    const text = `v1.${id}.${isSecure ? 's' : 'p'}.${startedAt.toString(36)}.${activeAt.toString(36)}`
    return `${text}.${mac(this.#session, text)}`
  }

  /** Null for what was not signed with this key. */
  read(cookie: string): SessionClaims | null {
    const [, id = '', kind, startedAt = '', activeAt = '', signature = ''] = SHAPE.exec(cookie) ?? []
    if (signature === '') return null
    if (!sameSecret(signature, mac(this.#session, cookie.slice(0, cookie.lastIndexOf('.'))))) return null
    return {
      id,
      isSecure: kind === 's',
      startedAt: Number.parseInt(startedAt, 36),
      activeAt: Number.parseInt(activeAt, 36)
    }
  }

  /** What a page of this session puts into its header, and no other page can know. */
  csrfToken(id: string): string {
    return mac(this.#csrf, id)
  }
}

const mac = (key: Uint8Array, text: string): string => createHmac('sha256', key).update(text).digest('base64url')
