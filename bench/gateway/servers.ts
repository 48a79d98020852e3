import { createSecretKey } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ZoneCreateSchema } from '../../schemas/zones.js'
import { createAppToken } from '../../src/shared/app-token.js'
import { packageVersion } from '../harness/peer-packages.js'
import { type BenchProcess, flagsOf, LOAD_CORE, SERVER_CORE, startProcess } from '../harness/process.js'

const API_SECRET = 'a-secret-for-benchmarks-0123456789abcdef'

export const GATEWAY = 'Gatehouse, all checks on'
export const OPENAPI = 'Gatehouse, routes of an OpenAPI document'
export const FIFTY_ROWS = 'Gatehouse, one of 50 rows of GATEWAY_UPSTREAMS'
export const WITHOUT_CHAIN = 'Gatehouse, without the hook chain'
export const HTTP_PROXY = 'bare `@fastify/http-proxy`'
export const UNDICI_DISPATCH = '`node:http` + undici dispatch, no checks'
export const EXPRESS = 'express + http-proxy-middleware'

/** The script of each server. */
const SCRIPTS = {
  [GATEWAY]: 'gatehouse',
  [OPENAPI]: 'gatehouse',
  [FIFTY_ROWS]: 'gatehouse',
  [WITHOUT_CHAIN]: 'without-chain',
  [HTTP_PROXY]: 'fastify-http-proxy',
  [UNDICI_DISPATCH]: 'node-undici-dispatch',
  [EXPRESS]: 'express-http-proxy-middleware'
} as const

export type ServerName = keyof typeof SCRIPTS

const isInstalled = (name: ServerName): boolean =>
  name !== EXPRESS || ['express', 'http-proxy-middleware'].every((each) => packageVersion(each) !== undefined)

export const startUpstream = async (): Promise<{ readonly process: BenchProcess; readonly url: string }> => {
  const process = startProcess(LOAD_CORE, new URL('./upstream.js', import.meta.url))
  const [, url = ''] = await process.line(/upstream at (\S+)/)
  return { process, url }
}

export interface RunningServer {
  readonly process: BenchProcess
  readonly port: number
}

/** Starts the gateway and the installed peers, or those of them that are named. */
export const startServers = async (
  backendUrl: string,
  // `Object.keys` widens the keys to string.
  names = Object.keys(SCRIPTS) as ServerName[]
): Promise<Map<ServerName, RunningServer>> => {
  const servers = new Map<ServerName, RunningServer>()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  const openApiFile = join(folder, 'openapi.json')
  writeFileSync(openApiFile, JSON.stringify(openApiDocument()))
  const rowsFile = join(folder, 'rows.json')
  writeFileSync(rowsFile, JSON.stringify(fiftyRows(backendUrl)))
  for (const name of names.filter(isInstalled)) {
    const file = SCRIPTS[name]
    const env = {
      BACKEND_URL: backendUrl,
      API_SECRET,
      GATEWAY_PORT: '0',
      AUDIT_LOG_FILE: '/dev/null',
      ...(name === OPENAPI && { GATEWAY_ROUTES: openApiFile }),
      ...(name === FIFTY_ROWS && { GATEWAY_UPSTREAMS: rowsFile })
    }
    const flags = file === 'gatehouse' ? flagsOf('gateway') : []
    const process = startProcess(SERVER_CORE, new URL(`./servers/${file}.js`, import.meta.url), env, flags)
    const [, port] = await process.line(/listening at http:\/\/[^:]+:(\d+)/)
    servers.set(name, { process, port: Number(port) })
  }
  // The gateway reads the file only at start.
  rmSync(folder, { recursive: true })
  return servers
}

/** Half of the rows are for other hosts. The requests of the benchmark belong to one of the others. */
const fiftyRows = (url: string) =>
  Array.from({ length: 50 }, (_, index) => ({
    name: `row-${index}`,
    url,
    paths: [index === 30 ? '/api/zones' : `/api/area-${index}/items`],
    ...(index < 25 && { hosts: [`host-${index}.example.com`] })
  }))

/** The two requests of the benchmark as an OpenAPI document, with the fields of the built-in routes. */
const openApiDocument = () => {
  const id = { name: 'id', in: 'path', required: true, schema: { type: 'string', minLength: 1 } }
  const expand = { name: 'expand', in: 'query', schema: { type: 'string', maxLength: 100 } }
  const schema = JSON.parse(JSON.stringify(ZoneCreateSchema))
  const paths = {
    '/api/zones/{id}': { get: { parameters: [id, expand] } },
    '/api/zones': { post: { requestBody: { required: true, content: { 'application/json': { schema } } } } }
  }
  return { openapi: '3.1.0', paths }
}

/** A request of a signed-in browser. */
export const browserRequest = (method: 'GET' | 'POST'): string => {
  const token = createAppToken(
    { userId: 7, email: 'a@example.com', role: 'operator' },
    createSecretKey(API_SECRET, 'utf8'),
    {
      format: 'jwt',
      lifetimeSeconds: 36_000
    }
  )
  const body = method === 'GET' ? '' : JSON.stringify({ name: 'Lobby', note: 'y'.repeat(870) })
  return [
    method === 'GET' ? 'GET /api/zones/17?expand=floor HTTP/1.1' : 'POST /api/zones HTTP/1.1',
    'Host: localhost:3000',
    'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
    'Accept: application/json',
    'Accept-Language: en',
    'Sec-Fetch-Site: same-origin',
    'Sec-Fetch-Mode: cors',
    'Sec-Fetch-Dest: empty',
    'Referer: http://localhost:3000/floors/3',
    `Cookie: csrf_token=abcdef; auth_token=${token}; auth_user=%7B%22userId%22%3A7%7D; auth_permissions=%5B%22zones.read%22%5D`,
    ...(method === 'GET'
      ? []
      : [
          'Origin: http://localhost:3000',
          'X-CSRF-Token: abcdef',
          'Content-Type: application/json',
          `Content-Length: ${body.length}`
        ]),
    '',
    body
  ].join('\r\n')
}
