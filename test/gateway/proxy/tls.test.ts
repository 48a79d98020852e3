import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { portOf } from '../../helper/address.js'
import { API_SECRET, startGateway } from '../../helper/gateway.js'
import { send } from '../../helper/http.js'
import { startProgram } from '../../helper/program.js'
import { formHeaders, jsonHeaders, ROUTE_KINDS, type RouteKind, ZONE } from '../../helper/route-kinds.js'

interface TlsBackend {
  readonly url: string
  /** The file of its self-signed certificate. */
  readonly certificate: string
  readonly requests: string[]
}

/** A backend with TLS and a certificate for this name. */
const startTlsBackend = async (t: Test, name: string): Promise<TlsBackend> => {
  const folder = t.testdir()
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const subject = ['-subj', '/CN=backend', '-addext', `subjectAltName=${name}`, '-days', '2']
  await promisify(execFile)('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', key, '-out', certificate])

  const requests: string[] = []
  const credentials = { key: await readFile(key), cert: await readFile(certificate) }
  const server = createServer(credentials, (request, response) => {
    requests.push(`${request.method} ${request.url}`)
    request.resume().on('end', () => response.end('{"secret":true}'))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `https://127.0.0.1:${portOf(server)}`, certificate, requests }
}

/** A separate process, because Node.js reads these variables at startup. */
const runGateway = async (t: Test, backend: TlsBackend, env: Readonly<Record<string, string>>): Promise<string> => {
  const program = await startProgram(t, 'dist/src/gateway/main.js', {
    NODE_ENV: 'production',
    GATEWAY_PORT: '0',
    BACKEND_URL: backend.url,
    API_SECRET,
    AUDIT_LOG_FILE: join(dirname(backend.certificate), 'audit.jsonl'),
    ...env
  })
  const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
  return url
}

/** The codes of a read, a write request and an upload; '' for each that was served. */
const codesOf = async (url: string, routeKind: RouteKind): Promise<string[]> => {
  const read = await send(url, routeKind.path)
  const write = await send(url, routeKind.path, { method: 'PUT', headers: jsonHeaders(), body: ZONE })
  const upload = await send(url, routeKind.upload, { method: 'POST', headers: formHeaders(), body: 'form' })
  return [read, write, upload].map(({ status, code }) => (status === 200 ? '' : code))
}

const REJECTED = ['BACKEND_UNREACHABLE', 'BACKEND_UNREACHABLE', 'BACKEND_UNREACHABLE']
const SERVED = ['', '', '']

t.test('a backend with TLS', async (t) => {
  const backend = await startTlsBackend(t, 'IP:127.0.0.1')
  t.beforeEach(() => {
    backend.requests.length = 0
  })

  t.test('a backend with an untrusted certificate is rejected', async (t) => {
    const { url, logs } = await startGateway(t, { env: { BACKEND_URL: backend.url } })
    for (const routeKind of ROUTE_KINDS) t.same(await codesOf(url, routeKind), REJECTED, routeKind.name)

    t.same(backend.requests, [], 'the backend receives no request')
    const failures = logs.filter(({ msg }) => msg === 'request failed')
    t.equal(failures.length, ROUTE_KINDS.length * REJECTED.length)
    t.match(failures[0], { err: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } }, 'the log says why')
  })

  t.test('a backend with an untrusted certificate is rejected even with NODE_TLS_REJECT_UNAUTHORIZED=0', async (t) => {
    const url = await runGateway(t, backend, { NODE_TLS_REJECT_UNAUTHORIZED: '0' })
    for (const routeKind of ROUTE_KINDS) t.same(await codesOf(url, routeKind), REJECTED, routeKind.name)

    t.same(backend.requests, [])
  })

  t.test('a backend whose certificate is in NODE_EXTRA_CA_CERTS is accepted', async (t) => {
    const url = await runGateway(t, backend, { NODE_EXTRA_CA_CERTS: backend.certificate })
    for (const routeKind of ROUTE_KINDS) t.same(await codesOf(url, routeKind), SERVED, routeKind.name)

    t.same(
      backend.requests,
      ROUTE_KINDS.flatMap(({ path, upload }) => [`GET ${path}`, `PUT ${path}`, `POST ${upload}`])
    )
  })

  t.test('a backend with a certificate for another name is rejected', async (t) => {
    const backend = await startTlsBackend(t, 'DNS:somebody.example,IP:127.0.0.2')
    const url = await runGateway(t, backend, { NODE_EXTRA_CA_CERTS: backend.certificate })
    for (const routeKind of ROUTE_KINDS) t.same(await codesOf(url, routeKind), REJECTED, routeKind.name)

    t.same(backend.requests, [])
  })
})
