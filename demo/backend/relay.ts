import type { FastifyInstance, FastifyRequest } from 'fastify'
import { EventError, type EventHandlerOptions, eventHandler, type RpcEvent } from '../../src/backend/index.js'
import { isObject } from '../../src/shared/is-object.js'
import { type Account, accountById } from './auth/accounts.js'
import type { Backend } from './route.js'

const TIMEOUT_MS = 3000

/** The ids of the users on a channel of the relay; null if the relay does not respond. */
export const usersOn = async ({ publish: { url, apiKey } }: Pick<Backend, 'publish'>, channel: string) => {
  try {
    const response = await fetch(`${url}/presence`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': apiKey },
      body: JSON.stringify({ channel }),
      signal: AbortSignal.timeout(TIMEOUT_MS)
    })
    return usersIn(await response.json())
  } catch {
    return null
  }
}

const usersIn = (body: unknown): readonly string[] | null => {
  const result = isObject(body) ? body.result : null
  const presence = isObject(result) ? result.presence : null
  if (!isObject(presence)) return null
  const users = Object.values(presence).map((client) => (isObject(client) ? String(client.user) : ''))
  return [...new Set(users)].sort()
}

const PERMISSION_DENIED = 403
const UNKNOWN_METHOD = 404

/** The routes that clients can call through the relay, by method. */
const RPC_ROUTES: Readonly<Record<string, string>> = { 'alerts.acknowledge': '/api/alerts/acknowledge' }
const RPC_SECONDS = 60

/**
 * Events of the relay: subscriptions to floors, calls of clients, and channels that became occupied or vacated.
 * @param secret `signing_secret` of the relay's proxies.
 */
export const eventRoutes = (app: FastifyInstance, backend: Backend, secret: string): void => {
  const options: EventHandlerOptions = { secrets: [secret] }
  const accountOf = async (user: string): Promise<Account> => {
    const account = await accountById(backend, user)
    if (account === null) throw new EventError(PERMISSION_DENIED, 'There is no such account.')
    return account
  }
  const subscribe = eventHandler(
    'subscribe',
    async ({ user, channel }) => {
      const { permissions } = await accountOf(user)
      const [, floorId = ''] = /^floor:(.+)$/.exec(channel) ?? []
      const [floor] = await backend.database.rows('SELECT 1 FROM floors WHERE id = $1', [floorId])
      if (floor === undefined || !permissions.includes('positions.read'))
        throw new EventError(PERMISSION_DENIED, 'Your account may not watch this floor.')
      return undefined
    },
    options
  )
  const state = eventHandler(
    'state',
    () => {
      // Without the floors, which pages ask for.
      void backend.publisher.publish('global:all', { type: 'watchers-changed' })
      return undefined
    },
    options
  )
  /** Runs the route of the method as the user, with its checks. */
  const call = async ({ user, method, data }: RpcEvent): Promise<unknown> => {
    const url = Object.hasOwn(RPC_ROUTES, method) ? RPC_ROUTES[method] : undefined
    if (url === undefined) throw new EventError(UNKNOWN_METHOD, 'There is no such method.')
    const { token } = backend.tokens.session(await accountOf(user), 'jwt', RPC_SECONDS)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await app.inject({ method: 'POST', url, headers, payload: JSON.stringify(data) })
    const { data: result, error } = response.json()
    if (error !== undefined) throw new EventError(response.statusCode, String(error.message))
    return result
  }
  const rpc = eventHandler('rpc', async (event) => ({ data: await call(event) }), options)

  void app.register(async (scope) => {
    // The signature belongs to the bytes of the body.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    for (const [name, handle] of Object.entries({ subscribe, state, rpc }))
      scope.post(`/relay/${name}`, { config: { rateLimit: false } }, async (request, reply) => {
        const response = await handle(toRequest(request))
        return reply
          .code(response.status)
          .type('application/json')
          .send(await response.text())
      })
  })
}

const toRequest = ({ headers, body }: FastifyRequest): Request => {
  const signature = headers['x-gatehouse-signature']
  return new Request('http://backend/relay', {
    method: 'POST',
    headers: typeof signature === 'string' ? { 'x-gatehouse-signature': signature } : {},
    body: Buffer.isBuffer(body) ? new Uint8Array(body) : ''
  })
}
