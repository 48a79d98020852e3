import { createHmac, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { type JWTHeaderParameters, SignJWT } from 'jose'
import type { Teardown } from '../../helper/child.js'
import { CLIENT_ID, type RestartableServer, startRestartableServer } from './fixture.js'

/** The parts of a token, which tests can change. */
export interface TokenRecipe {
  header: JWTHeaderParameters
  claims: Record<string, unknown>
  key: KeyObject
}

export interface ScriptedProvider extends RestartableServer {
  readonly key: KeyObject
  /** Creates the ID token of the next sign-ins; by default a validly signed one. */
  idToken: (recipe: TokenRecipe) => string | Promise<string>
  /** Parameters to add to the callback URL, or to replace in it. */
  callback: (query: URLSearchParams) => void
  /** The response of the token endpoint instead of a token. */
  token: ((request: IncomingMessage, response: ServerResponse) => void) | null
  metadata: Record<string, unknown>
  /** The claims at `/userinfo`, which the metadata must name. */
  userInfo: Record<string, unknown>
}

export const signed = ({ header, claims, key }: TokenRecipe): Promise<string> =>
  new SignJWT(claims).setProtectedHeader(header).sign(key)

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Unsigned. */
export const unsigned = ({ header, claims }: TokenRecipe): string =>
  `${encoded({ ...header, alg: 'none' })}.${encoded(claims)}.`

/** Signed with a known secret. */
export const signedWithText = ({ header, claims }: TokenRecipe, secret: string | Buffer): string => {
  const content = `${encoded({ ...header, alg: 'HS256' })}.${encoded(claims)}`
  return `${content}.${createHmac('sha256', secret).update(content).digest('base64url')}`
}

// One per test file, because generating a key is slow.
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

/** A provider that signs in every user and can send invalid tokens. */
export const startScriptedProvider = async (t: Teardown): Promise<ScriptedProvider> => {
  const standing = await startRestartableServer(t)
  const nonces = new Map<string, string | null>()
  const provider = Object.assign<RestartableServer, Omit<ScriptedProvider, keyof RestartableServer>>(standing, {
    key: privateKey,
    idToken: signed,
    callback: () => undefined,
    token: null,
    metadata: {},
    userInfo: {}
  })
  const json = (response: ServerResponse, content: unknown): void => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(content))
  }

  const routes: Record<
    string,
    (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => unknown
  > = {
    '/.well-known/openid-configuration': (_request, response) =>
      json(response, {
        issuer: standing.url,
        authorization_endpoint: `${standing.url}/authorize`,
        token_endpoint: `${standing.url}/token`,
        jwks_uri: `${standing.url}/keys`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
        ...provider.metadata
      }),
    '/keys': (_request, response) =>
      json(response, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k1', use: 'sig', alg: 'RS256' }] }),
    '/authorize': (_request, response, query) => {
      const code = randomBytes(8).toString('hex')
      nonces.set(code, query.get('nonce'))
      const back = new URL(query.get('redirect_uri') ?? '')
      back.searchParams.set('code', code)
      back.searchParams.set('state', query.get('state') ?? '')
      provider.callback(back.searchParams)
      response.writeHead(302, { location: back.href }).end()
    },
    '/userinfo': (_request, response) => json(response, { sub: 'ada', ...provider.userInfo }),
    '/token': async (request, response) => {
      const body = await text(request)
      if (provider.token !== null) return provider.token(request, response)
      const code = new URLSearchParams(body).get('code') ?? ''
      const nonce = nonces.get(code)
      if (!nonces.delete(code)) {
        response.statusCode = 400
        return json(response, { error: 'invalid_grant' })
      }
      const now = Math.floor(Date.now() / 1000)
      const claims = { iss: standing.url, aud: CLIENT_ID, sub: 'ada', iat: now, exp: now + 300, nonce }
      const idToken = await provider.idToken({
        header: { alg: 'RS256', kid: 'k1' },
        claims: { ...claims, email: 'ada@example.com', name: 'Ada', groups: [] },
        key: privateKey
      })
      json(response, { access_token: 'access', token_type: 'Bearer', expires_in: 300, id_token: idToken })
    }
  }
  standing.listener = (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', standing.url)
    const route = routes[pathname]
    if (route === undefined) response.writeHead(404).end()
    else void route(request, response, searchParams)
  }
  return provider
}
