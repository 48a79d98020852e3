import { join } from 'node:path'
import type { Test } from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { createLogger } from '../../src/shared/logger.js'
import { API_SECRET } from '../../test/helper/gateway.js'
import { type HttpResponse, type Message, send } from '../../test/helper/http.js'
import { newDatabase } from '../../test/helper/postgres.js'
import { API_KEY, HMAC_SECRET } from '../../test/helper/relay-rules.js'
import { demoConfig } from '../backend/config.js'
import { type DemoBackend, startDemoBackend } from '../backend/start.js'

export const PASSWORD = 'a-password-for-tests'

export interface Publication {
  readonly channel: string
  readonly data: { readonly type: string; readonly data: readonly Record<string, unknown>[] }
}

/** A response; tests check the fields of its body themselves. */
export const reply = ({ status, headers, body }: HttpResponse) => ({
  status,
  headers,
  body,
  json: () => JSON.parse(body)
})
export type Reply = ReturnType<typeof reply>

export interface TestBackend {
  readonly url: string
  readonly backend: DemoBackend
  /** All publications so far. */
  readonly publications: Publication[]
  /** Advances the clock. */
  advance(ms: number): void
  send(path: string, message?: Message): Promise<Reply>
  /** A request with a JSON body, and this token. */
  request(method: string, path: string, token: string | null, body?: unknown): Promise<Reply>
  /** Signs in with a demo account and returns the token. */
  signIn(role: 'admin' | 'operator' | 'viewer', path?: string): Promise<string>
}

export interface TestBackendOptions {
  /** By default an empty database of a PostgreSQL, whose start and queries take a tenth of the CPU time of `embedded`. */
  readonly database?: 'embedded' | { readonly url: string }
  readonly env?: Readonly<Record<string, string>>
  /** A fixed time; by default the clock starts now. */
  readonly nowMs?: number
  /** Prefix of new ids, for a database that already has rows. */
  readonly newIds?: string
}

/** Starts the demo backend. The simulator advances only when the test calls it. */
export const startTestBackend = async (
  t: Test,
  { database, env = {}, nowMs, newIds = 'new' }: TestBackendOptions = {}
): Promise<TestBackend> => {
  const databaseUrl = database === 'embedded' ? '' : (database?.url ?? (await newDatabase()))
  const config = demoConfig({
    DEMO_BACKEND_PORT: '0',
    DEMO_SIMULATOR: 'off',
    DEMO_BCRYPT_ROUNDS: '4',
    DATABASE_URL: databaseUrl,
    DEMO_PASSWORD: PASSWORD,
    TOKEN_SECRET: API_SECRET,
    REALTIME_PUBLISH_URL: 'http://127.0.0.1:1/api',
    REALTIME_API_KEY: API_KEY,
    REALTIME_CLIENT_URL: 'ws://localhost:8100/connection/websocket',
    REALTIME_HMAC_SECRET: HMAC_SECRET,
    ...env
  })
  const publications: Publication[] = []
  let shiftMs = 0
  let ids = 0
  const backend = await startDemoBackend(config, {
    log: createLogger({ name: 'backend', level: 'silent' }),
    // The backend publishes batches only, whose type the publisher does not know.
    publisher: {
      publish: async (channel, data) => {
        publications.push({ channel, data: data as Publication['data'] })
        return { isPublished: true }
      }
    },
    now: () => new Date((nowMs ?? Date.now()) + shiftMs),
    newId: () => `${newIds}-${++ids}`,
    // Shared with the program.
    emptyDatabaseFile: join(ROOT, 'node_modules/.cache/empty-database.tar')
  })
  t.teardown(() => backend.close())

  const { url } = backend
  const sendIt = async (path: string, message?: Message): Promise<Reply> => reply(await send(url, path, message))
  const request: TestBackend['request'] = (method, path, token, body) =>
    sendIt(path, {
      method,
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' })
      },
      ...(body !== undefined && { body: JSON.stringify(body) })
    })
  return {
    url,
    backend,
    publications,
    advance: (ms) => {
      shiftMs += ms
    },
    send: sendIt,
    request,
    signIn: async (role, path = '/api/auth/login') => {
      const response = await request('POST', path, null, { email: `${role}@example.com`, password: PASSWORD })
      return response.json().data.token
    }
  }
}

/** An image of one pixel. */
export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkaPj/HwAEgQJ/zPcGFQAAAABJRU5ErkJggg==',
  'base64'
)

/** A form with one field and one file. */
export const form = (file: Buffer, name = 'a.png'): Pick<Message, 'headers' | 'body'> => ({
  headers: { 'content-type': 'multipart/form-data; boundary=edge' },
  body: Buffer.concat([
    Buffer.from('--edge\r\nContent-Disposition: form-data; name="note"\r\n\r\nhello\r\n'),
    Buffer.from(`--edge\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n`),
    file,
    Buffer.from('\r\n--edge--\r\n')
  ])
})
