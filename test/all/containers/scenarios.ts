import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Centrifuge } from 'centrifuge'
import { WebSocket } from 'ws'
import { secretKey, signJwt } from '../../../src/shared/jwt.js'
import { urlOf } from '../../helper/address.js'
import type { Checks } from './checks.js'

/** The settings and the functional checks of an image. Secrets are files, as container engines provide them. */
export interface Scenario {
  readonly env: Readonly<Record<string, string>>
  readonly secrets: Readonly<Record<string, string>>
  readonly check: (checks: Checks, url: string) => Promise<void>
  readonly close: () => Promise<void>
}

const newSecret = (): string => randomBytes(32).toString('hex')

/** The gateway in front of a backend that returns the request line. */
export const gatewayScenario = async (port: number): Promise<Scenario> => {
  const backend = createServer(({ method, url }, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ request: `${method} ${url}` }))
  })
  backend.listen(0, '127.0.0.1')
  await once(backend, 'listening')
  return {
    env: {
      GATEWAY_PORT: String(port),
      BACKEND_URL: urlOf(backend),
      API_SECRET_FILE: '/run/secrets/api_secret'
    },
    secrets: { api_secret: newSecret() },
    check: async (checks, url) => {
      const response = await fetch(`${url}/api/zones?floor=2`)
      const body = await response.text()
      checks.that('serves a request', response.ok && body === '{"request":"GET /api/zones?floor=2"}', body)
      const denied = await fetch(`${url}/api/zones/7`, { method: 'DELETE' })
      checks.that('rejects a write request without a token', denied.status === 403, denied.status)
      const strict = response.headers.get('strict-transport-security')
      checks.that('runs with production rules', strict === 'max-age=31536000; includeSubDomains', strict)
    },
    close: async () => {
      backend.close()
      await once(backend, 'close')
    }
  }
}

const CHANNEL = 'floor:2'
const PUBLICATION = { type: 'position-batch', data: [] }

/** The relay with a subscriber and a publisher. */
export const relayScenario = async (port: number): Promise<Scenario> => {
  const secrets = { hmac_secret: newSecret(), api_key: newSecret(), admin_password: newSecret() }
  let client: Centrifuge | null = null
  return {
    env: {
      RELAY_PORT: String(port),
      REALTIME_HMAC_SECRET_FILE: '/run/secrets/hmac_secret',
      REALTIME_API_KEY_FILE: '/run/secrets/api_key',
      RELAY_ADMIN_PASSWORD_FILE: '/run/secrets/admin_password'
    },
    secrets,
    check: async (checks, url) => {
      const token = signJwt({ sub: 'user-1' }, secretKey(secrets.hmac_secret), { lifetimeSeconds: 3600 })
      client = new Centrifuge(`${url.replace('http', 'ws')}/connection/websocket`, { token, websocket: WebSocket })
      const subscription = client.newSubscription(CHANNEL)
      const subscribed = new Promise((resolve) => subscription.once('subscribed', resolve))
      const published = new Promise<unknown>((resolve) => subscription.once('publication', ({ data }) => resolve(data)))
      subscription.subscribe()
      client.connect()
      await subscribed

      const publish = (key: string): Promise<Response> =>
        fetch(`${url}/api/publish`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-api-key': key },
          body: JSON.stringify({ channel: CHANNEL, data: PUBLICATION })
        })
      checks.that('rejects a publish with another key', (await publish('another')).status === 401)
      checks.that('accepts a publish', (await publish(secrets.api_key)).ok)
      const data = await published
      const page = await (await fetch(`${url}/admin`)).text()
      checks.that("has the operators' page", /<script type="module"[^>]* src="\/admin\/assets\//.test(page))
      checks.that('delivers the publication', JSON.stringify(data) === JSON.stringify(PUBLICATION), data)
    },
    close: async () => client?.disconnect()
  }
}

/** The demo backend with its embedded database and an unreachable relay. */
export const demoScenario = async (port: number): Promise<Scenario> => ({
  env: {
    DEMO_BACKEND_PORT: String(port),
    DEMO_PASSWORD_FILE: '/run/secrets/demo_password',
    TOKEN_SECRET_FILE: '/run/secrets/api_secret',
    REALTIME_PUBLISH_URL: 'http://127.0.0.1:1/api',
    REALTIME_CLIENT_URL: 'ws://localhost/connection/websocket',
    REALTIME_API_KEY_FILE: '/run/secrets/api_secret',
    REALTIME_HMAC_SECRET_FILE: '/run/secrets/api_secret'
  },
  secrets: { api_secret: newSecret(), demo_password: 'a-password-for-tests' },
  check: async (checks, url) => {
    const { status } = await fetch(`${url}/api/auth/backend-login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'viewer@example.com', password: 'a-password-for-tests' })
    })
    checks.that('signs in an account', status === 200, status)
  },
  close: async () => undefined
})
