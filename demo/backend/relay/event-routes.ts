import type { FastifyInstance, FastifyRequest } from 'fastify'
import { EventError, type EventHandlerOptions, eventHandler, type RpcEvent } from '../../../src/backend/index.js'
import { accountById } from '../auth/accounts.js'
import type { Caller } from '../auth/permissions.js'
import { httpErrorOf } from '../errors.js'
import type { Operation } from '../mount.js'
import type { Backend } from '../route.js'

interface EventRoutesOptions {
  readonly backend: Backend
  /** `signing_secret` of the relay's proxies. */
  readonly secret: string
  /** The operations that clients can call through the relay, by method. */
  readonly rpcMethods: Readonly<Record<string, Operation>>
}

const PERMISSION_DENIED = 403
const UNKNOWN_METHOD = 404

/** Events of the relay: subscriptions to floors, calls of clients, and channels that became occupied or vacated. */
export const eventRoutes = (app: FastifyInstance, { backend, secret, rpcMethods }: EventRoutesOptions) => {
  const options: EventHandlerOptions = { secrets: [secret] }
  const callerOf = async (user: string): Promise<Caller> => {
    const caller = await accountById(backend, user)
    if (caller === null) throw new EventError(PERMISSION_DENIED, 'There is no such account.')
    return caller
  }
  const subscribe = eventHandler(
    'subscribe',
    async ({ user, channel }) => {
      const { permissions } = await callerOf(user)
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
    ({ events }) => {
      // Without the floors: every user receives this channel, and may not know all of them.
      if (backend.watchers.apply(events)) void backend.publisher.publish('global:all', { type: 'watchers-changed' })
      return undefined
    },
    options
  )
  const rpc = (request: FastifyRequest) =>
    eventHandler('rpc', async (event) => ({ data: await call(request, event) }), options)
  const call = async (request: FastifyRequest, { user, method, data }: RpcEvent): Promise<unknown> => {
    const operation = Object.hasOwn(rpcMethods, method) ? rpcMethods[method] : undefined
    if (operation === undefined) throw new EventError(UNKNOWN_METHOD, 'There is no such method.')
    try {
      return await operation({ caller: await callerOf(user), params: {}, query: {}, body: data, request })
    } catch (error) {
      const known = httpErrorOf(error)
      throw known === null ? error : new EventError(known.status, known.message)
    }
  }

  void app.register(async (scope) => {
    // The signature belongs to the bytes of the body.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    const routes = { subscribe: () => subscribe, state: () => state, rpc }
    for (const [name, handlerFor] of Object.entries(routes))
      scope.post(`/relay/${name}`, { config: { rateLimit: false } }, async (request, reply) => {
        const response = await handlerFor(request)(toRequest(request))
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
