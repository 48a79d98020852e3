import { createHash, hkdfSync } from 'node:crypto'
import { EncryptJWT, errors, type JWTPayload, jwtDecrypt } from 'jose'

interface SealingKey {
  readonly id: string
  readonly key: Uint8Array
}

export interface SealerOptions {
  /** The first seals; all of them open, so that a new secret can be put in front of the old one. */
  readonly secrets: readonly string[]
  /** Keeps what was sealed for one purpose from being shown for another. */
  readonly purpose: string
  readonly now: () => number
  /** Longer texts are not looked at. */
  readonly maxCharacters?: number
}

/** Browsers drop a cookie of this size, so whoever sends one did not get it from here. */
const MAX_COOKIE_CHARACTERS = 4096

/** Makes texts that only gateways with the same secret can read or make: encrypted JWTs, with an end inside. */
export class Sealer {
  readonly #keys: readonly SealingKey[]
  readonly #purpose: string
  readonly #now: () => number
  readonly #maxCharacters: number

  constructor({ secrets, purpose, now, maxCharacters = MAX_COOKIE_CHARACTERS }: SealerOptions) {
    this.#keys = secrets.map((secret) => sealingKey(secret, purpose))
    this.#purpose = purpose
    this.#now = now
    this.#maxCharacters = maxCharacters
  }

  async seal(content: Readonly<Record<string, unknown>>, lifetimeSeconds: number): Promise<string> {
    const { id, key } = this.#keys[0] as SealingKey
    return new EncryptJWT(content as JWTPayload)
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: id })
      .setAudience(this.#purpose)
      .setExpirationTime(Math.floor(this.#now() / 1000) + lifetimeSeconds)
      .encrypt(key)
  }

  /** What was sealed, or null for everything else: tampered with, cut, too old, sealed with a secret that is gone. */
  async open(sealed: string): Promise<Readonly<Record<string, unknown>> | null> {
    if (sealed.length > this.#maxCharacters) return null
    try {
      const { payload } = await jwtDecrypt(sealed, ({ kid }) => this.#keyWith(kid), {
        audience: this.#purpose,
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
        requiredClaims: ['exp'],
        currentDate: new Date(this.#now())
      })
      return payload
    } catch (error) {
      if (error instanceof errors.JOSEError) return null
      throw error
    }
  }

  #keyWith(id: unknown): Uint8Array {
    const found = this.#keys.find((key) => key.id === id)
    if (found === undefined) throw new errors.JWEDecryptionFailed('sealed with a secret that is not here')
    return found.key
  }
}

const sealingKey = (secret: string, purpose: string): SealingKey => {
  const key = new Uint8Array(hkdfSync('sha256', secret, '', `gatehouse ${purpose} v1`, 32))
  // Says which key it was, and nothing about it.
  const id = createHash('sha256').update(key).digest('base64url').slice(0, 8)
  return { id, key }
}
