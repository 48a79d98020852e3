import type { Test } from 'tap'
import { createAppToken } from '../../../src/shared/app-token.js'
import { urlOf } from '../../helper/address.js'
import { apiKey, startGateway, type TestGateway, type TestGatewayOptions } from '../../helper/gateway.js'
import { type HttpResponse, send } from '../../helper/http.js'
import { required } from '../../helper/required.js'

export const INTERNAL_KEY = 'an-internal-key-for-tests-0123456789'
export const REVOCATION_ENV = { GATEWAY_INTERNAL_PORT: '0', GATEWAY_INTERNAL_KEY: INTERNAL_KEY }

export interface RevocableGateway extends TestGateway {
  readonly internalUrl: string
  revoke(body: unknown, headers?: Readonly<Record<string, string>>): Promise<HttpResponse>
}

/** A gateway whose internal API listens too. */
export const startRevocable = async (t: Test, options: TestGatewayOptions = {}): Promise<RevocableGateway> =>
  withInternalApi(await startGateway(t, { ...options, env: { ...REVOCATION_ENV, ...options.env } }))

export const withInternalApi = async (gateway: TestGateway): Promise<RevocableGateway> => {
  const internal = required(gateway.gateway.internal)
  await internal.listen({ host: '127.0.0.1', port: 0 })
  const internalUrl = urlOf(internal.server)
  return {
    ...gateway,
    internalUrl,
    revoke: (body, headers = { 'x-api-key': INTERNAL_KEY }) =>
      send(internalUrl, '/api/internal/revoke', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body)
      })
  }
}

/** A token of this user that was issued some seconds ago. */
export const tokenFrom = (secondsAgo: number, claims: object, format: 'jwt' | 'legacy' = 'jwt'): string =>
  createAppToken({ role: 'operator', ...claims }, apiKey, {
    format,
    lifetimeSeconds: 3600,
    nowMs: Date.now() - secondsAgo * 1000
  })

/** A path that needs a token. */
export const STRICT_PATH = '/api/audit/entries'

export const getWith = (gateway: TestGateway, token: string, path = STRICT_PATH): Promise<HttpResponse> =>
  gateway.send(path, { headers: { cookie: `auth_token=${token}` } })
