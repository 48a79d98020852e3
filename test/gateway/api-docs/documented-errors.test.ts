import type { ServerResponse } from 'node:http'
import { Value } from '@sinclair/typebox/value'
import t, { type Test } from 'tap'
import { routeTables } from '../../../src/gateway/routes/index.js'
import type { LocalRoute, RouteDeclaration } from '../../../src/gateway/routes/tables/declare.js'
import { createAppToken } from '../../../src/shared/app-token.js'
import { freePort } from '../../helper/free-port.js'
import { apiKey, browserHeaders, startGateway, type TestGateway, tokenOf } from '../../helper/gateway.js'
import type { HttpResponse, Message } from '../../helper/http.js'
import { documentOf } from './read-document.js'

// The document repeats the rules of the hooks. These tests send requests to every operation and compare the errors with
// the documented ones.

const rows = routeTables.flatMap((table) => table.rows)
const document = await documentOf(routeTables)

const nameOf = ({ method, path }: RouteDeclaration): string => `${method} ${path}`

const documented = (code: string): readonly string[] => rows.filter((row) => codesOf(row).includes(code)).map(nameOf)

const codesOf = ({ method, path }: RouteDeclaration): readonly string[] => {
  const item = document.paths[path.replace(/:(\w+)/g, '{$1}')]
  const { responses = {} } = item?.[method.toLowerCase() as 'get'] ?? {}
  return Object.values(responses).flatMap(({ content }) => Object.keys(content?.['application/json']?.examples ?? {}))
}

const env = { TRUST_PROXY: 'loopback', BODY_LIMIT: '2KiB', UPLOAD_LIMIT: '2KiB' }

let addresses = 0
/** A different client each time, so that the login limit does not apply. */
const freshAddress = (): string => `2001:db8:${(++addresses).toString(16)}::1`

const FORM = 'multipart/form-data; boundary=b'
const form = (bytes = 1): string =>
  `--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n${'a'.repeat(bytes)}\r\n--b--\r\n`

/** A valid request. */
const good = ({ method, kind, body }: RouteDeclaration): Message => {
  const headers = { ...browserHeaders(tokenOf('admin')), 'x-forwarded-for': freshAddress() }
  if (kind === 'upload') return { method, headers: { ...headers, 'content-type': FORM }, body: form() }
  if (body === null) return { method, headers }
  return {
    method,
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body.examples[0])
  }
}

type Spoil = (message: Message, row: RouteDeclaration) => Message

const withHeaders =
  (changes: Readonly<Record<string, string>>): Spoil =>
  (message) => ({ ...message, headers: { ...message.headers, ...changes } })

/** Not for reads, whose bodies are ignored. */
const withJson =
  (body: string): Spoil =>
  (message, { method, kind }) =>
    method === 'GET' || kind === 'upload'
      ? message
      : { ...withHeaders({ 'content-type': 'application/json' })(message, {} as never), body }

const expired = createAppToken({ userId: '7' }, apiKey, {
  format: 'jwt',
  lifetimeSeconds: 60,
  nowMs: Date.now() - 61_000
})

const WRONG: Readonly<Record<string, Spoil>> = {
  CSRF_MISMATCH: withHeaders({ 'x-csrf-token': 'another' }),
  ORIGIN_REFUSED: withHeaders({ origin: 'https://elsewhere.example' }),
  UNAUTHENTICATED: withHeaders({ cookie: 'csrf_token=t0ken' }),
  TOKEN_EXPIRED: withHeaders({ cookie: `csrf_token=t0ken; auth_token=${expired}` }),
  MALFORMED_BODY: withJson('{"a":'),
  VALIDATION_FAILED: withJson('7'),
  UNSUPPORTED_MEDIA_TYPE: (message, row) => ({
    ...withHeaders({ 'content-type': 'text/plain' })(message, row),
    body: 'a'
  }),
  BODY_TOO_LARGE: (message, row) =>
    row.kind === 'upload' ? { ...message, body: form(4096) } : withJson(`{"a":"${'a'.repeat(4096)}"}`)(message, row)
}

/** The operations whose response matches. */
const responseMatching = async (
  { send }: TestGateway,
  isMeant: (response: HttpResponse) => boolean,
  { spoil = (message) => message, among = rows }: { spoil?: Spoil; among?: readonly RouteDeclaration[] } = {}
): Promise<readonly string[]> => {
  const responses = await Promise.all(among.map((row) => send(row.path.replace(/:\w+/g, '7'), spoil(good(row), row))))
  return among.filter((_row, index) => isMeant(responses[index] as HttpResponse)).map(nameOf)
}

const hasCode = (code: string) => (response: HttpResponse) => response.code === code

t.test('documented errors', async (t) => {
  t.test('every operation serves a valid request', async (t) => {
    const gateway = await startGateway(t, { env })
    t.same(await responseMatching(gateway, ({ status }) => status === 200), rows.map(nameOf))
  })

  for (const [code, spoil] of Object.entries(WRONG)) {
    t.test(`exactly the operations that document ${code} respond with it`, async (t) => {
      const gateway = await startGateway(t, { env })
      t.same(await responseMatching(gateway, hasCode(code), { spoil }), documented(code))
    })
  }

  t.test('exactly the operations that document AMBIGUOUS_PATH respond with it', async (t) => {
    const { send } = await startGateway(t, { env })
    const withParameter = rows.filter(({ path }) => path.includes(':'))
    for (const row of withParameter) {
      const response = await send(row.path.replace(/:\w+/g, 'a%2Fb'), good(row))
      t.equal(response.code, 'AMBIGUOUS_PATH')
    }
    t.same(withParameter.map(nameOf), documented('AMBIGUOUS_PATH'))
  })

  t.test('exactly the operations that document RATE_LIMITED respond with it', async (t) => {
    const gateway = await startGateway(t, { env })
    const limited: string[] = []
    for (const row of rows.filter(({ method, path }) => method === 'POST' || path.startsWith('/api/auth/'))) {
      const message = good(row)
      const responses = await Promise.all(
        [1, 2, 3, 4, 5, 6].map(() => gateway.send(row.path.replace(/:\w+/g, '7'), message))
      )
      if (responses.some(hasCode('RATE_LIMITED'))) limited.push(nameOf(row))
    }
    t.same(limited, documented('RATE_LIMITED'))
  })

  t.test('exactly the operations that document BACKEND_UNREACHABLE respond with it', async (t) => {
    const gateway = await startGateway(t, { env: { ...env, BACKEND_URL: `http://127.0.0.1:${await freePort()}` } })
    t.same(await responseMatching(gateway, hasCode('BACKEND_UNREACHABLE')), documented('BACKEND_UNREACHABLE'))
  })

  t.test('exactly the operations that document BACKEND_TIMEOUT respond with it', async (t) => {
    const gateway = await startGateway(t, { env: { ...env, BACKEND_TIMEOUT_MS: '500', BACKEND_CONNECTIONS: '512' } })
    gateway.backend.respond = () => undefined
    t.same(await responseMatching(gateway, hasCode('BACKEND_TIMEOUT')), documented('BACKEND_TIMEOUT'))
  })

  t.test('exactly the operations that document OVERLOADED respond with it', async (t) => {
    const gateway = await startGateway(t, { env: { ...env, GATEWAY_MAX_IN_FLIGHT: '1' } })
    const held = new Promise<ServerResponse>((resolve) => {
      gateway.backend.respond = (request, response) => {
        if (request.url === '/api/held') resolve(response)
        else response.end('{}')
      }
    })
    const last = gateway.send('/api/held')
    const response = await held
    t.same(await responseMatching(gateway, hasCode('OVERLOADED')), documented('OVERLOADED'))
    response.end()
    await last
  })
})

t.test('documented responses of the gateway', async (t) => {
  const OWN = rows.filter((row): row is LocalRoute => row.kind === 'local')

  const isAsDocumented = (t: Test, { documentation }: LocalRoute, { status, body, headers }: HttpResponse): void => {
    const { responses } = documentation
    const response = responses[String(status)] ?? responses[`${String(status)[0]}XX`]
    const cookies = (headers['set-cookie'] ?? []).map((cookie) => cookie.slice(0, cookie.indexOf('=')))
    t.same(cookies.toSorted(), response?.cookies?.toSorted() ?? [])
    t.ok(response && (response.body === undefined || Value.Check(response.body, JSON.parse(body))), `${status} ${body}`)
  }

  for (const row of OWN) {
    t.test(`the response to ${nameOf(row)} is as documented`, async (t) => {
      const gateway = await startGateway(t, { env })
      const session = { success: true, data: { token: tokenOf('operator'), user: { id: 7 }, expiresIn: 60 } }
      gateway.backend.respond = (_request, response) => response.end(JSON.stringify(session))
      const reply = await gateway.send(row.path, good(row))
      t.equal(reply.status, 200)
      isAsDocumented(t, row, reply)
    })
  }

  for (const row of OWN.filter(({ path }) => path.startsWith('/api/health') || path.endsWith('/logout'))) {
    t.test(`the response to ${nameOf(row)} is as documented while backend and database are down`, async (t) => {
      const unreachable = `127.0.0.1:${await freePort()}`
      const gateway = await startGateway(t, {
        env: { ...env, BACKEND_URL: `http://${unreachable}`, DATABASE_URL: `postgres://a:b@${unreachable}/c` }
      })
      const response = await gateway.send(row.path, good(row))
      isAsDocumented(t, row, response)
    })
  }
})
