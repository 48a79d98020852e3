import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, renameSync } from 'node:fs'
import { open, watch } from 'node:fs/promises'
import { Agent, request as httpRequest, type ServerResponse } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { basename, dirname, join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { errorCode } from '../../src/shared/error-code.js'
import { portOf } from '../helper/address.js'
import { type Child, startChild, V8_OPTIONS } from '../helper/child.js'
import { environment } from '../helper/environment.js'
import { responseOf } from '../helper/exact-http.js'
import { API_SECRET, browserHeaders } from '../helper/gateway.js'
import { type HttpResponse, send } from '../helper/http.js'
import { startProgram } from '../helper/program.js'
import { type RecordingBackend, startBackend } from '../helper/recording-backend.js'

const PROGRAM = 'dist/src/gateway/main.js'

interface RunningGateway {
  readonly program: Child
  readonly backend: RecordingBackend
  readonly url: string
  readonly auditFile: string
}

/** The gateway in production mode, in its own process. */
const runGateway = async (t: Test, env: Readonly<Record<string, string>> = {}): Promise<RunningGateway> => {
  const backend = await startBackend(t)
  const auditFile = join(t.testdir(), 'audit.jsonl')
  const program = await startProgram(t, PROGRAM, {
    NODE_ENV: 'production',
    GATEWAY_PORT: '0',
    BACKEND_URL: backend.url,
    API_SECRET,
    AUDIT_LOG_FILE: auditFile,
    ...env
  })
  const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
  return { program, backend, url, auditFile }
}

/** Holds the next requests at the backend. Resolves to their pending responses when that many have arrived. */
const heldAtBackend = (backend: RecordingBackend, count = 1): Promise<ServerResponse[]> =>
  new Promise((resolve) => {
    const pending: ServerResponse[] = []
    backend.respond = (_request, response) => {
      if (pending.push(response) === count) resolve(pending)
    }
  })

const logged = (program: Child): Record<string, unknown>[] =>
  program.stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

const connectTo = async (t: Test, url: string): Promise<Socket> => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** Resolves when the port is closed. */
const portClosed = async (url: string): Promise<void> => {
  for (;;) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    try {
      await once(socket, 'connect')
    } catch (error) {
      if (errorCode(error) === 'ECONNREFUSED') return
    }
    socket.destroy()
    await setTimeout(10)
  }
}

const STACK_TRACE = /^\s+at |node:internal|\.js:\d+/m
const DEADLINE_EXCEEDED = 'shutdown deadline exceeded'

/** Causes a rejection whose audit record has this id. */
const beDenied = (url: string, requestId: string): Promise<HttpResponse> =>
  send(url, '/api/audit/logs', { headers: { 'x-request-id': requestId } })

const requestIdsIn = (lines: string): string[] =>
  lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).requestId)

t.test('a gateway that cannot start', async (t) => {
  t.test('the gateway prints one line per setting error and per misspelled variable, and exits with 1', async (t) => {
    const program = await startProgram(t, PROGRAM, {
      NODE_ENV: 'production',
      GATEWAY_PORT: 'http',
      BACKEND_URL: 'https://gateway:hunter2@backend',
      API_SECRET: 'hunter2',
      REDIS_URL: 'http://:hunter2@localhost',
      TRUST_PROXY: 'true',
      WEB_ROOT: t.testdir(),
      LOG_LEVEL: 'loud',
      API_SECERT: API_SECRET
    })

    t.same(await program.exited, { code: 1, signal: null })
    t.same(
      program.stderr.split('\n').map((line) => /^gateway: ([A-Z_]+) must /.exec(line)?.[1] ?? line),
      [
        ...['GATEWAY_PORT', 'BACKEND_URL', 'TRUST_PROXY', 'REDIS_URL', 'WEB_ROOT', 'LOG_LEVEL', 'API_SECRET'],
        'gateway: API_SECERT is not a setting. Did you mean API_SECRET?',
        ''
      ]
    )
    t.notMatch(program.stderr, STACK_TRACE)
    t.notMatch(program.stderr, 'hunter2')
    t.equal(program.stdout, '')
  })

  t.test('errors of files behind errors of settings are printed with them', async (t) => {
    const limits = '[{"name":"a","paths":["/api/none/{id}"],"by":"user","rate":1}]'
    const program = await startProgram(t, PROGRAM, {
      LOG_LEVEL: 'loud',
      GATEWAY_PORT: '3456',
      BACKEND_URL: 'http://127.0.0.1:3456',
      GATEWAY_LIMITS: join(t.testdir({ 'limits.json': limits }), 'limits.json'),
      GATEWAY_ROUTES: '/none/openapi.yaml'
    })
    t.same(await program.exited, { code: 1, signal: null })
    t.same(program.stderr.trimEnd().split('\n'), [
      'gateway: LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not "loud"',
      'gateway: BACKEND_URL must not be the address of the gateway itself',
      'gateway: GATEWAY_ROUTES must name a readable file (ENOENT): /none/openapi.yaml'
    ])
  })

  t.test('without NODE_ENV the gateway does not start, and says what to set', async (t) => {
    const program = await startProgram(t, PROGRAM, { NODE_ENV: '', GATEWAY_PORT: '0' })
    t.same(await program.exited, { code: 1, signal: null })
    t.match(
      program.stderr,
      /^gateway: NODE_ENV is required: set NODE_ENV=production, or NODE_ENV=development [^\n]*\n$/
    )
    t.equal(program.stdout, '')
  })

  t.test('the gateway prints one line for a port that is taken', async (t) => {
    const taken = createServer()
    t.teardown(() => taken.close())
    await once(taken.listen(0, '127.0.0.1'), 'listening')

    const program = await startProgram(t, PROGRAM, {
      GATEWAY_HOST: '127.0.0.1',
      GATEWAY_ALLOW_DEVELOPMENT: 'true',
      GATEWAY_PORT: String(portOf(taken)),
      AUDIT_LOG_FILE: join(t.testdir(), 'audit.jsonl')
    })

    t.same(await program.exited, { code: 1, signal: null })
    t.match(program.stderr, /^gateway: GATEWAY_PORT must be free .*EADDRINUSE.*\n$/)
    t.notMatch(program.stderr + program.stdout, STACK_TRACE)
  })
})

t.test('a gateway outside production', async (t) => {
  const start = (t: Test, env: Readonly<Record<string, string>>): Promise<Child> =>
    startProgram(t, PROGRAM, { GATEWAY_PORT: '0', AUDIT_LOG_FILE: join(t.testdir(), 'audit.jsonl'), ...env })

  t.test('outside production the gateway does not listen at an address that other machines can reach', async (t) => {
    const program = await start(t, { GATEWAY_HOST: '0.0.0.0' })

    t.same(await program.exited, { code: 1, signal: null })
    t.match(program.stderr, /^gateway: GATEWAY_HOST must be a loopback address .*GATEWAY_ALLOW_DEVELOPMENT=true.*\n$/)
    t.equal(program.stdout, '')
  })

  t.test('the gateway that may listen there logs at start which checks are off', async (t) => {
    const program = await start(t, { NODE_ENV: 'test', GATEWAY_HOST: '0.0.0.0', GATEWAY_ALLOW_DEVELOPMENT: 'true' })
    await program.waitForLine('listening at')

    const checksOff = ['API authentication', 'CSRF', 'login limit', 'HSTS', 'strict CSP']
    t.match(logged(program)[0], { level: 40, checksOff, msg: 'development mode, checks are off' })
    // One line for each address of the machine if the gateway listens on all of them.
    t.ok(
      logged(program)
        .slice(1)
        .every(({ msg }) => /^listening at/.test(String(msg)))
    )
  })
})

// Incomplete requests on a connection, before and after a response.
const UNFINISHED = ['', 'GET /api/zo', 'GET /api/zones HTTP/1.1\r\nHost: gateway\r\nAccept: ']

const openUnfinished = async (t: Test, url: string): Promise<void> => {
  for (const bytes of UNFINISHED) {
    const [fresh, used] = [await connectTo(t, url), await connectTo(t, url)]
    used.write('GET /api/health HTTP/1.1\r\nHost: gateway\r\n\r\n')
    await once(used, 'data')
    for (const socket of [fresh, used]) socket.write(bytes)
  }
  // The gateway accepts connections in order: after a response on a later one, it has the earlier ones.
  await send(url, '/api/health')
}

/** A request that is pending at the backend, on a keep-alive connection. */
const pendingRequest = async (t: Test, { url, backend }: RunningGateway) => {
  const atBackend = heldAtBackend(backend)
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const request = httpRequest(`${url}/api/zones`, { agent }).end()
  const [pending] = await atBackend
  return { request, pending }
}

t.test('a gateway that gets SIGTERM', async (t) => {
  const gateway = await runGateway(t)
  const { program, backend, url, auditFile } = gateway

  const ids = Array.from({ length: 100 }, (_, index) => `denied-${index}`)
  const rejections = await Promise.all(ids.map((id) => beDenied(url, id)))
  await openUnfinished(t, url)
  const atBackend = heldAtBackend(backend, 100)
  const responses = Promise.all(
    Array.from({ length: 100 }, () => send(url, '/api/zones', { headers: browserHeaders() }))
  )
  const inFlight = await atBackend
  const keptAlive = await pendingRequest(t, gateway)
  const started = await pendingRequest(t, gateway)
  started.pending?.write('first half, ')
  const startedResponse = await responseOf(started.request)
  backend.respond = (_request, response) => response.end('received')
  const upload = httpRequest(`${url}/api/unknown`, { method: 'POST', headers: browserHeaders(), agent: false })
  upload.write('first half, ')
  await once(backend.server, 'request')

  program.signal('SIGTERM')
  await portClosed(url)

  t.test('requests in flight are completed', async (t) => {
    for (const response of inFlight) response.end('late, but whole')
    t.ok((await responses).every(({ status, body }) => status === 200 && body === 'late, but whole'))
  })

  t.test('the rest of a running upload is received', async (t) => {
    upload.end('second half')
    const response = await responseOf(upload)
    t.equal(response.statusCode, 200)
    t.equal(await text(response), 'received')
    t.equal(backend.requests.at(-1)?.body, 'first half, second half')
  })

  t.test('a pending response on a keep-alive connection announces that the connection closes', async (t) => {
    keptAlive.pending?.end('late')
    const response = await responseOf(keptAlive.request)
    t.equal(response.headers.connection, 'close', 'the client must not reuse the connection')
    t.equal(await text(response), 'late')
  })

  t.test('a started response on a keep-alive connection is completed', async (t) => {
    started.pending?.end('second half')
    t.equal(await text(startedResponse), 'first half, second half')
  })

  t.test('the gateway then exits with 0, although connections without a complete request are open', async (t) => {
    t.same(await program.exited, { code: 0, signal: null })
    t.match(
      logged(program).filter(({ msg }) => msg !== 'request'),
      [{ msg: /^listening at/ }, { msg: 'stopping', signal: 'SIGTERM' }, { msg: 'stopped' }]
    )
    t.notMatch(program.stdout, DEADLINE_EXCEEDED)
    t.equal(program.stderr, '')
  })

  t.test('every rejection is in the audit file', async (t) => {
    t.ok(rejections.every(({ status }) => status === 401))
    t.same(requestIdsIn(readFileSync(auditFile, 'utf8')).sort(), [...ids].sort())
  })
})

t.test('a closed log pipe', async (t) => {
  t.test('the gateway shuts down if its log pipe is closed', async (t) => {
    const folder = t.testdir()
    // Two lines are passed on, then the reading end of the pipe is closed.
    const script = `mkfifo ${folder}/log
      (head -n 2 ${folder}/log >&2; echo reader gone >&2) &
      exec ${[process.execPath, ...V8_OPTIONS, resolve(PROGRAM)].join(' ')} > ${folder}/log`
    const program = await startChild(t, '/bin/sh', ['-c', script], {
      PATH: environment.path,
      NODE_ENV: 'test',
      GATEWAY_PORT: '0',
      AUDIT_LOG_FILE: join(folder, 'audit.jsonl')
    })
    await program.waitForLine('listening at')
    await program.waitForLine('reader gone')

    program.signal('SIGTERM')

    t.same(await program.exited, { code: 0, signal: null })
  })
})

t.test('a gateway that listens at a name, with variables that resemble settings', async (t) => {
  const { program, url } = await runGateway(t, {
    GATEWAY_HOST: 'localhost',
    TRUST_PROXIES: '10.0.0.1',
    GATEWAY_PROT: '3001'
  })

  t.test('the gateway listens at one address of the name', async (t) => {
    t.match(url, /^http:\/\/(?:127\.0\.0\.1|\[::1\]):\d+$/)
    t.equal((await fetch(`${url}/api/health`)).status, 200)
    t.equal(program.stdout.match(/listening at/g)?.length, 1)
  })

  t.test('the gateway warns about the variables and names the settings', async (t) => {
    t.match(
      logged(program).filter(({ msg }) => msg === 'unknown setting'),
      [
        { level: 40, variable: 'TRUST_PROXIES', resembles: 'TRUST_PROXY' },
        { level: 40, variable: 'GATEWAY_PROT', resembles: 'GATEWAY_PORT' }
      ]
    )
  })

  t.test('the gateway exits on SIGTERM', async (t) => {
    program.signal('SIGTERM')
    t.same(await program.exited, { code: 0, signal: null })
    t.notMatch(program.stdout, DEADLINE_EXCEEDED)
  })
})

t.test('SIGHUP', async (t) => {
  const folder = t.testdir()
  const [secretFile, auditFile] = [join(folder, 'secret'), join(folder, 'audit.jsonl')]
  execFileSync('mkfifo', [secretFile])
  const program = await startProgram(t, PROGRAM, {
    NODE_ENV: 'production',
    GATEWAY_PORT: '0',
    BACKEND_URL: 'http://127.0.0.1:1',
    API_SECRET_FILE: secretFile,
    AUDIT_LOG_FILE: auditFile
  })

  t.test('SIGHUP during startup does not end the gateway', async (t) => {
    // A named pipe: the gateway opens it when it reads its settings, and waits for the content.
    const secret = await open(secretFile, 'w')
    program.signal('SIGHUP')
    await secret.writeFile(API_SECRET)
    await secret.close()

    t.ok(await program.waitForLine('listening at'))
  })

  t.test('SIGHUP makes the gateway reopen the audit file', async (t) => {
    const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
    await beDenied(url, 'before')
    renameSync(auditFile, `${auditFile}.1`)
    const created = isCreated(auditFile)

    program.signal('SIGHUP')
    await created
    await beDenied(url, 'after')
    program.signal('SIGTERM')

    t.same(await program.exited, { code: 0, signal: null })
    t.same(requestIdsIn(readFileSync(`${auditFile}.1`, 'utf8')), ['before'])
    t.same(requestIdsIn(readFileSync(auditFile, 'utf8')), ['after'])
  })
})

/** Resolves when the file is created after the call. */
const isCreated = async (file: string): Promise<void> => {
  for await (const { filename } of watch(dirname(file))) if (filename === basename(file)) return
}

t.test('a gateway whose audit file cannot be written', async (t) => {
  t.test(
    'a gateway without a writable audit file warns once, writes rejections to stderr and serves requests',
    async (t) => {
      const { program, url } = await runGateway(t, {
        AUDIT_LOG_FILE: join(fileURLToPath(import.meta.url), 'audit.jsonl')
      })

      const responses = [await beDenied(url, 'a'), await send(url, '/api/zones'), await beDenied(url, 'b')]
      program.signal('SIGTERM')

      t.same(await program.exited, { code: 0, signal: null })
      t.same(
        responses.map(({ status }) => status),
        [401, 200, 401]
      )
      const marked = program.stderr.split('\n').filter(Boolean)
      t.ok(marked.every((line) => line.startsWith('[AUDIT] {')))
      t.same(requestIdsIn(marked.map((line) => line.replace('[AUDIT] ', '')).join('\n')), ['a', 'b'])
      t.equal(program.stdout.match(/audit file not writable/g)?.length, 1)
      t.match(program.stdout, /"code":"ENOTDIR"/)
    }
  )
})
