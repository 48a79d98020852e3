import { join } from 'node:path'
import type { Test } from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { type Client, createClient } from '../../../src/client/index.js'
import { createFakeGateway, FakeRpcError } from '../../../src/client/testing/index.js'
import { createAppToken } from '../../../src/shared/app-token.js'
import { cookieJar } from '../../helper/cookie-jar.js'
import { API_SECRET, apiKey, startGateway } from '../../helper/gateway.js'
import { CLIENT, socketAt } from '../../helper/realtime.js'
import { startBackend } from '../../helper/recording-backend.js'
import { connectClient, officialClient, startRelay, subscribeTo } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'

// The same service twice: as a fake, and with a real gateway and relay.

export const ADA = {
  userId: 'u-1',
  email: 'ada@example.com',
  displayName: 'Ada',
  role: 'user',
  permissions: ['carts.write']
}
export const BOB = { userId: 'u-2', displayName: 'Bob' }
const CARTS = [{ id: 1, name: 'Linen' }]
const WRONG_PASSWORD = { code: 'INVALID_CREDENTIALS', message: 'The e-mail address or the password is wrong.' }

/** A page and what happens around it. */
export interface Stage {
  readonly client: Client
  /** The browser's own fetch, with cookies, for requests that the client does not send. */
  readonly fetch: typeof globalThis.fetch
  publish(channel: string, data: unknown): unknown
  /** Another client of Bob subscribes. Returns a function that ends it. */
  bobJoins(channel: string): Promise<() => void>
  /** The relay closes the connection. */
  disconnect(): unknown
}

export const fakeStage = async (t: Test): Promise<Stage> => {
  const gateway = createFakeGateway({
    routes: {
      'GET /api/carts': () => ({ success: true, data: CARTS }),
      'POST /api/carts': ({ body }) => Response.json({ success: true, data: body }, { status: 201 })
    },
    login: ({ email, password }) => (email === ADA.email && password === 'right' ? ADA : null),
    connInfo: ({ displayName }) => ({ name: displayName }),
    channels: { 'orders:*': { historySize: 10 }, 'private:*': { subscribe: () => false } },
    rpc: {
      add: (data) => Object(data).a + Object(data).b,
      finish: () => {
        throw new FakeRpcError(409, 'already done')
      }
    }
  })
  const client = createClient(gateway.options)
  t.teardown(() => client.close())
  return {
    client,
    fetch: gateway.fetch,
    publish: (channel, data) => gateway.publish(channel, data),
    bobJoins: async (channel) => gateway.join(channel, BOB),
    disconnect: () => gateway.disconnect(3001, 'shutdown')
  }
}

export const realStage = async (t: Test): Promise<Stage> => {
  const backend = await startBackend(t)
  const relay = await startRelay(t, {
    channel: {
      namespaces: [
        {
          name: 'orders',
          allow_subscribe_for_client: true,
          presence: true,
          join_leave: true,
          allow_presence_for_subscriber: true,
          allow_publish_for_subscriber: true,
          allow_history_for_subscriber: true,
          history_size: 10,
          history_ttl: '60s',
          force_recovery: true
        },
        { name: 'private' }
      ]
    },
    rpc: { proxy: { endpoint: `${backend.url}/rpc` }, without_namespace: { proxy_enabled: true } }
  })
  const { url } = await startGateway(t, {
    hasAllRoutes: true,
    backend,
    env: {
      API_SECRET,
      COOKIE_SECURE: 'false',
      GATEWAY_ROUTES: join(ROOT, 'test/client/testing/openapi.yaml'),
      GATEWAY_UNKNOWN_PATHS: 'refuse'
    }
  })
  const tokenOf = (user: typeof ADA): string =>
    createAppToken({ userId: user.userId, role: user.role }, apiKey, { format: 'jwt', lifetimeSeconds: 3600 })
  const info = { name: ADA.displayName }
  const responses: Record<string, (body: string) => readonly [status: number, body: unknown]> = {
    'POST /api/auth/login': (body) =>
      JSON.parse(body).password === 'right'
        ? [200, { success: true, data: { token: tokenOf(ADA), user: ADA, expiresIn: 3600 } }]
        : [401, { success: false, error: WRONG_PASSWORD }],
    'POST /api/auth/logout': () => [200, { success: true }],
    'POST /rpc': (body) => {
      const { method, data } = JSON.parse(body)
      return [
        200,
        method === 'add' ? { result: { data: data.a + data.b } } : { error: { code: 409, message: 'already done' } }
      ]
    },
    'GET /api/carts': () => [200, { success: true, data: CARTS }],
    'POST /api/carts': (body) => [201, { success: true, data: JSON.parse(body) }],
    'GET /api/negotiate': () => [
      200,
      {
        success: true,
        data: { url: socketAt(relay.port), token: relayToken({ sub: ADA.userId, info }), expiresIn: 3600 }
      }
    ]
  }
  backend.respond = ({ method, url, body }, response) => {
    const [status, content] = responses[`${method} ${url}`]?.(body) ?? [404, {}]
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(content))
  }
  const jar = cookieJar()
  const browserFetch: typeof globalThis.fetch = (input, init) => jar.fetch(new URL(String(input), url), init)
  const client = createClient({ fetch: browserFetch, cookies: () => jar.readable, realtime: { client: CLIENT } })
  t.teardown(() => client.close())
  return {
    client,
    fetch: browserFetch,
    publish: (channel, data) => relay.publish(channel, data),
    bobJoins: async (channel) => {
      const token = relayToken({ sub: BOB.userId, info: { name: BOB.displayName } })
      const bob = officialClient(t, relay, 'websocket', { getToken: async () => token })
      await subscribeTo(await connectClient(bob), channel)
      return () => bob.disconnect()
    },
    disconnect: () => relay.api('disconnect', { user: ADA.userId, disconnect: { code: 3001, reason: 'shutdown' } })
  }
}
