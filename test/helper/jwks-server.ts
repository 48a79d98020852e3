import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { exportJWK, type JWK, SignJWT } from 'jose'
import type { Test } from 'tap'
import { urlOf } from './address.js'

export interface SigningKey {
  readonly id: string
  readonly algorithm: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

const PAIRS = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  RS512: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  ES512: () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  EdDSA: () => generateKeyPairSync('ed25519')
} as const

export const newSigningKey = (algorithm: keyof typeof PAIRS, id = `${algorithm}-1`): SigningKey => ({
  id,
  algorithm,
  ...PAIRS[algorithm]()
})

/** The public part as an entry of a key set. */
export const publicJwk = async ({ id, publicKey }: SigningKey, more: JWK | object = {}): Promise<JWK> => ({
  ...(await exportJWK(publicKey)),
  kid: id,
  use: 'sig',
  ...more
})

export const pemOf = ({ publicKey }: SigningKey): string => publicKey.export({ type: 'spki', format: 'pem' }).toString()

/** A token of an hour, with the key id in its header unless `header` says otherwise. */
export const signToken = (
  { id, algorithm, privateKey }: SigningKey,
  claims: Readonly<Record<string, unknown>> = { sub: '42' },
  header: object = { kid: id }
): Promise<string> =>
  new SignJWT({ ...claims })
    .setProtectedHeader({ alg: algorithm, ...header })
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(privateKey)

export interface JwksServer {
  readonly url: string
  /** Requests so far. */
  readonly requests: number
  /** Replaces the behaviour. */
  respond: (request: IncomingMessage, response: ServerResponse) => void
  /** Responds with these keys. */
  serve(...keys: readonly JWK[]): void
}

/** A server with a JSON Web Key Set. */
export const startJwksServer = async (t: Test): Promise<JwksServer> => {
  const http = createServer((request, response) => {
    requests++
    server.respond(request, response)
  })
  let requests = 0
  const server = {
    url: '',
    get requests() {
      return requests
    },
    respond: (_request: IncomingMessage, response: ServerResponse): void => {
      response.writeHead(404).end()
    },
    serve: (...keys: readonly JWK[]): void => {
      const body = JSON.stringify({ keys })
      server.respond = (_request, response) => response.setHeader('content-type', 'application/json').end(body)
    }
  }
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  t.teardown(() => {
    http.closeAllConnections()
    http.close()
  })
  // A listening TCP server has an address and port.
  server.url = `${urlOf(http)}/keys`
  return server
}
