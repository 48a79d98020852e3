import { createHash, hkdfSync } from 'node:crypto'
import { EncryptJWT, errors, jwtDecrypt } from 'jose'

interface EncryptionKey {
  readonly id: string
  readonly key: Uint8Array
}

export interface SealerOptions {
  /** The first secret encrypts; every secret decrypts, so that a new one can be put in front during a rotation. */
  readonly secrets: readonly string[]
  /** Audience of the tokens: a token sealed for one purpose cannot be used for another. */
  readonly purpose: string
  readonly now: () => number
  /** Longer input is rejected without decrypting it. */
  readonly maxCharacters?: number
}

/** Browsers drop larger cookies, so a longer value was not issued by the gateway. */
const MAX_COOKIE_CHARACTERS = 4096

/** Encrypts content into JWTs with an expiry. Only gateways that share the secret can create or read them. */
export class Sealer {
  readonly #encryptionKey: EncryptionKey
  readonly #keys: readonly EncryptionKey[]
  readonly #purpose: string
  readonly #now: () => number
  readonly #maxCharacters: number

  constructor({ secrets, purpose, now, maxCharacters = MAX_COOKIE_CHARACTERS }: SealerOptions) {
    const [newest, ...older] = secrets.map((secret) => encryptionKey(secret, purpose))
    if (newest === undefined) throw new Error('a sealer needs at least one secret')
    this.#encryptionKey = newest
    this.#keys = [newest, ...older]
    this.#purpose = purpose
    this.#now = now
    this.#maxCharacters = maxCharacters
  }

  async seal(content: Readonly<Record<string, unknown>>, lifetimeSeconds: number): Promise<string> {
    const { id, key } = this.#encryptionKey
    return new EncryptJWT({ ...content })
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: id })
      .setAudience(this.#purpose)
      .setExpirationTime(Math.floor(this.#now() / 1000) + lifetimeSeconds)
      .encrypt(key)
  }

  /** The sealed content and its `exp`. Null if the text was modified, truncated, has expired or its secret is unknown. */
  async open(sealed: string): Promise<Readonly<Record<string, unknown>> | null> {
    if (sealed.length > this.#maxCharacters) return null
    try {
      const { payload } = await jwtDecrypt(sealed, ({ kid }) => this.#keyById(kid), {
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

  #keyById(id: unknown): Uint8Array {
    const found = this.#keys.find((key) => key.id === id)
    if (found === undefined) throw new errors.JWEDecryptionFailed('unknown key id')
    return found.key
  }
}

const encryptionKey = (secret: string, purpose: string): EncryptionKey => {
  const key = new Uint8Array(hkdfSync('sha256', secret, '', `gatehouse ${purpose} v1`, 32))
  const id = createHash('sha256').update(key).digest('base64url').slice(0, 8)
  return { id, key }
}
