import type { ServerResponse } from 'node:http'
import { Value } from '@sinclair/typebox/value'
import t, { type Test } from 'tap'
import { routeTables } from '../../../src/gateway/routes/index.js'
import type { LocalRoute, RouteDeclaration } from '../../../src/gateway/routes/tables/declare.js'
import { createAppToken } from '../../../src/shared/app-token.js'
import { freePort } from '../../helper/free-port.js'
import { apiKey, browserHeaders, startGateway, type TestGateway, tokenOf } from '../../helper/gateway.js'
import type { HttpResponse, Message } from '../../helper/http.js'
import { documentOf, operationsOf } from './read-document.js'

// The document repeats the rules of the hooks. These tests send requests to every operation and compare the errors with
// the documented ones.

const rows = routeTables.flatMap((table) => table.rows)
const operations = operationsOf(await documentOf(routeTables))

const nameOf = ({ method, path }: RouteDeclaration): string => `${method} ${path}`

const documented = (code: string): readonly string[] => rows.filter((row) => codesOf(row).includes(code)).map(nameOf)

const codesOf = ({ method, path }: RouteDeclaration): readonly string[] => {
  const documentedPath = path.replace(/:(\w+)/g, '{$1}')
  const placed = operations.find((each) => each.path === documentedPath && each.method === method.toLowerCase())
  const { responses = {} } = placed?.operation ?? {}
  return Object.values(responses).flatMap(({ content }) => Object.keys(content?.['application/json']?.examples ?? {}))
}

const env = { TRUST_PROXY: 'loopback', BODY_LIMIT: '2KiB', UPLOAD_LIMIT: '2KiB' }

let addresses = 0
/** A different client each time, so that the login limit does not apply. */
const freshAddress = (): string => `2001:db8:${(++addresses).toString(16)}::1`

const FORM = 'multipart/form-data; boundary=b'
const form = (bytes = 1): string =>
  `--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n${'a'.repeat(bytes)}\r\n--b--\r\n`

const validRequest = ({ method, kind, body }: RouteDeclaration): Message => {
  const headers = { ...browserHeaders(tokenOf('admin')), 'x-forwarded-for': freshAddress() }
  if (kind === 'upload') return { method, headers: { ...headers, 'content-type': FORM }, body: form() }
  if (body === null) return { method, headers }
  return {
    method,
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body.examples[0])
  }
}

/** Makes a valid request of this route invalid. */
type Invalidate = (message: Message, row: RouteDeclaration) => Message

const withHeaders =
  (changes: Readonly<Record<string, string>>) =>
  (message: Message): Message => ({ ...message, headers: { ...message.headers, ...changes } })

/** Not for reads, whose bodies are ignored. */
const withJson =
  (body: string): Invalidate =>
  (message, { method, kind }) =>
    method === 'GET' || kind === 'upload'
      ? message
      : { ...withHeaders({ 'content-type': 'application/json' })(message), body }

const expired = createAppToken({ userId: '7' }, apiKey, {
  format: 'jwt',
  lifetimeSeconds: 60,
  nowMs: Date.now() - 61_000
})

const WRONG: Readonly<Record<string, Invalidate>> = {
  CSRF_MISMATCH: withHeaders({ 'x-csrf-token': 'another' }),
  ORIGIN_REFUSED: withHeaders({ origin: 'https://elsewhere.example' }),
  UNAUTHENTICATED: withHeaders({ cookie: 'csrf_token=t0ken' }),
  TOKEN_EXPIRED: withHeaders({ cookie: `csrf_token=t0ken; auth_token=${expired}` }),
  MALFORMED_BODY: withJson('{"a":'),
  VALIDATION_FAILED: withJson('7'),
  UNSUPPORTED_MEDIA_TYPE: (message) => ({
    ...withHeaders({ 'content-type': 'text/plain' })(message),
    body: 'a'
  }),
  BODY_TOO_LARGE: (message, row) =>
    row.kind === 'upload' ? { ...message, body: form(4096) } : withJson(`{"a":"${'a'.repeat(4096)}"}`)(message, row)
}

/** The operations whose response matches. */
const operationsWith = async (
  { send }: TestGateway,
  matches: (response: HttpResponse) => boolean,
  invalidate: Invalidate = (message) => message
): Promise<readonly string[]> => {
  const results = await Promise.all(
    rows.map(async (row) => ({
      name: nameOf(row),
      response: await send(row.path.replace(/:\w+/g, '7'), invalidate(validRequest(row), row))
    }))
  )
  return results.filter(({ response }) => matches(response)).map(({ name }) => name)
}

const hasCode = (code: string) => (response: HttpResponse) => response.code === code

t.test('documented errors', async (t) => {
  const gateway = await startGateway(t, { hasAllRoutes: true, env })

  t.test('every operation serves a valid request', async (t) => {
    t.same(await operationsWith(gateway, ({ status }) => status === 200), rows.map(nameOf))
  })

  for (const [code, invalidate] of Object.entries(WRONG)) {
    t.test(`exactly the operations that document ${code} respond with it`, async (t) => {
      t.same(await operationsWith(gateway, hasCode(code), invalidate), documented(code))
    })
  }

  t.test('exactly the operations that document AMBIGUOUS_PATH respond with it', async (t) => {
    const withParameter = rows.filter(({ path }) => path.includes(':'))
    for (const row of withParameter) {
      const response = await gateway.send(row.path.replace(/:\w+/g, 'a%2Fb'), validRequest(row))
      t.equal(response.code, 'AMBIGUOUS_PATH')
    }
    t.same(withParameter.map(nameOf), documented('AMBIGUOUS_PATH'))
  })

  t.test('exactly the operations that document RATE_LIMITED respond with it', async (t) => {
    const limited: string[] = []
    for (const row of rows.filter(({ method, path }) => method === 'POST' || path.startsWith('/api/auth/'))) {
      const message = validRequest(row)
      const responses = await Promise.all(
        [1, 2, 3, 4, 5, 6].map(() => gateway.send(row.path.replace(/:\w+/g, '7'), message))
      )
      if (responses.some(hasCode('RATE_LIMITED'))) limited.push(nameOf(row))
    }
    t.same(limited, documented('RATE_LIMITED'))
  })

  t.test('exactly the operations that document BACKEND_UNREACHABLE respond with it', async (t) => {
    const gateway = await startGateway(t, {
      hasAllRoutes: true,
      env: { ...env, BACKEND_URL: `http://127.0.0.1:${await freePort()}` }
    })
    t.same(await operationsWith(gateway, hasCode('BACKEND_UNREACHABLE')), documented('BACKEND_UNREACHABLE'))
  })

  t.test('exactly the operations that document BACKEND_TIMEOUT respond with it', async (t) => {
    const gateway = await startGateway(t, {
      hasAllRoutes: true,
      env: { ...env, BACKEND_TIMEOUT_MS: '500', BACKEND_CONNECTIONS: '512' }
    })
    gateway.backend.respond = () => undefined
    t.same(await operationsWith(gateway, hasCode('BACKEND_TIMEOUT')), documented('BACKEND_TIMEOUT'))
  })

  t.test('exactly the operations that document OVERLOADED respond with it', async (t) => {
    const gateway = await startGateway(t, { hasAllRoutes: true, env: { ...env, GATEWAY_MAX_IN_FLIGHT: '1' } })
    const pending = new Promise<ServerResponse>((resolve) => {
      gateway.backend.respond = (request, response) => {
        if (request.url === '/api/pending') resolve(response)
        else response.end('{}')
      }
    })
    const last = gateway.send('/api/pending')
    const response = await pending
    t.same(await operationsWith(gateway, hasCode('OVERLOADED')), documented('OVERLOADED'))
    response.end()
    await last
  })
})

t.test('documented responses of the gateway', async (t) => {
  const gateway = await startGateway(t, { env })
  const LOCAL_ROUTES = rows.filter((row): row is LocalRoute => row.kind === 'local')

  const assertDocumented = (t: Test, { documentation }: LocalRoute, { status, body, headers }: HttpResponse): void => {
    const { responses } = documentation
    const response = responses[String(status)] ?? responses[`${String(status)[0]}XX`]
    const cookies = (headers['set-cookie'] ?? []).map((cookie) => cookie.slice(0, cookie.indexOf('=')))
    t.same(cookies.toSorted(), response?.cookies?.toSorted() ?? [])
    t.ok(response && (response.body === undefined || Value.Check(response.body, JSON.parse(body))), `${status} ${body}`)
  }

  for (const row of LOCAL_ROUTES) {
    t.test(`the response to ${nameOf(row)} is as documented`, async (t) => {
      const session = { success: true, data: { token: tokenOf('operator'), user: { id: 7 }, expiresIn: 60 } }
      gateway.backend.respond = (_request, response) => response.end(JSON.stringify(session))
      const reply = await gateway.send(row.path, validRequest(row))
      t.equal(reply.status, 200)
      assertDocumented(t, row, reply)
    })
  }

  for (const row of LOCAL_ROUTES.filter(({ path }) => path.startsWith('/api/health') || path.endsWith('/logout'))) {
    t.test(`the response to ${nameOf(row)} is as documented while backend and database are down`, async (t) => {
      const unreachable = `127.0.0.1:${await freePort()}`
      const gateway = await startGateway(t, {
        env: { ...env, BACKEND_URL: `http://${unreachable}`, DATABASE_URL: `postgres://a:b@${unreachable}/c` }
      })
      const response = await gateway.send(row.path, validRequest(row))
      assertDocumented(t, row, response)
    })
  }
})
