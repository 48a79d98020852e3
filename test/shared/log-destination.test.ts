import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { constants, openSync, readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { connect, Socket } from 'node:net'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { type Child, startChild, V8_OPTIONS } from '../helper/child.js'
import { environment } from '../helper/environment.js'
import { eventually } from '../helper/eventually.js'
import { freePort } from '../helper/free-port.js'
import { API_SECRET } from '../helper/gateway.js'
import { send } from '../helper/http.js'

const SECRET = '0123456789abcdef'.repeat(4)

interface Program {
  readonly entry: string
  readonly portVariable: string
  readonly healthPath: string
  readonly env: Readonly<Record<string, string>>
}

const RELAY: Program = {
  entry: 'dist/src/relay/main.js',
  portVariable: 'RELAY_PORT',
  healthPath: '/health',
  env: { NODE_ENV: 'test', REALTIME_HMAC_SECRET: SECRET, REALTIME_API_KEY: SECRET }
}
const GATEWAY: Program = {
  entry: 'dist/src/gateway/main.js',
  portVariable: 'GATEWAY_PORT',
  healthPath: '/api/health',
  env: { NODE_ENV: 'production', BACKEND_URL: 'http://127.0.0.1:1', API_SECRET, AUDIT_LOG_FILE: '/dev/full' }
}
const RELAY_WITH_WORKERS: Program = { ...RELAY, env: { ...RELAY.env, RELAY_WORKERS: '2' } }

interface Running {
  readonly program: Child
  readonly url: string
}

/** Starts the program from a shell that redirects its output, and waits until it is ready. */
const run = async (t: Test, program: Program, redirect: string): Promise<Running> => {
  for (;;) {
    const running = await attempt(t, program, redirect)
    // Another program may have taken the port meanwhile.
    if (running !== null) return running
  }
}

const attempt = async (t: Test, program: Program, redirect: string): Promise<Running | null> => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const command = `exec ${[process.execPath, ...V8_OPTIONS, resolve(program.entry)].join(' ')} ${redirect}`
  const child = await startChild(t, '/bin/sh', ['-c', command], {
    PATH: environment.path,
    [program.portVariable]: String(port),
    ...program.env
  })
  let hasExited = false
  void child.exited.then(() => {
    hasExited = true
  })
  const isServing = (): Promise<boolean> =>
    send(url, program.healthPath).then(
      ({ status }) => status === 200,
      () => false
    )
  await eventually(async () => hasExited || (await isServing()))
  return hasExited ? null : { program: child, url }
}

/** A full pipe without a reader until `read` is called, which returns the lines. */
const fullPipe = async (t: Test): Promise<{ path: string; read: () => readonly string[] }> => {
  const path = join(t.testdir(), 'log')
  execFileSync('mkfifo', [path])
  // Opened for reading and writing, so that opening does not block.
  const holder = await open(path, 'r+')
  t.teardown(() => holder.close())
  await holder.write(`${'x'.repeat(PIPE_BYTES - 1)}\n`)
  return {
    path,
    read: () => {
      const lines: string[] = []
      const socket = new Socket({ fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK) })
      t.teardown(() => socket.destroy())
      createInterface({ input: socket }).on('line', (line) => {
        if (line.startsWith('{')) lines.push(line)
      })
      return lines
    }
  }
}

/** The pipe capacity of Linux. */
const PIPE_BYTES = 65_536

/** So many requests on one connection, each with a log line. */
const requests = async (url: string, count: number): Promise<void> => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  // Before the first request, because the connection may close while the last responses are awaited.
  const closed = once(socket, 'close')
  let responses = 0
  let rest = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    const parts = (rest + text).split(STATUS_LINE)
    responses += parts.length - 1
    // A status line may be split between two chunks.
    rest = (parts.at(-1) ?? '').slice(1 - STATUS_LINE.length)
    if (responses >= count) socket.end()
  })
  // A log line has at most so much of both.
  const path = `/${'x'.repeat(255)}`
  const id = 'i'.repeat(64)
  for (let sent = 0; sent < count; sent += 50) {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: gateway\r\nX-Request-Id: ${id}\r\n\r\n`.repeat(50))
    await eventually(() => responses >= sent)
  }
  await closed
  if (responses < count) throw new Error(`${responses} responses to ${count} requests`)
}

const STATUS_LINE = 'HTTP/1.1 '

const stops = async (t: Test, { program }: Running): Promise<void> => {
  program.signal('SIGTERM')
  t.same(await program.exited, { code: 0, signal: null })
}

t.test('a relay whose log disk is full serves and stops', async (t) => {
  const running = await run(t, RELAY, '> /dev/full')
  t.equal((await send(running.url, RELAY.healthPath)).status, 200)
  await stops(t, running)
})

t.test('a relay with workers whose log is a pipe without a reader serves and stops', async (t) => {
  const { path } = await fullPipe(t)
  const running = await run(t, RELAY_WITH_WORKERS, `> ${path}`)
  t.equal((await send(running.url, RELAY.healthPath)).status, 200)
  await stops(t, running)
})

// test/gateway/main.test.ts has that of a gateway.
t.test('a relay whose log pipe is closed serves and stops', async (t) => {
  const path = join(t.testdir(), 'log')
  execFileSync('mkfifo', [path])
  const reader = open(path, 'r')
  const running = await run(t, RELAY, `> ${path}`)
  await (await reader).close()
  t.equal((await send(running.url, RELAY.healthPath)).status, 200)
  await stops(t, running)
})

t.test('a gateway whose log, audit file and error output are full serves and stops', async (t) => {
  const running = await run(t, GATEWAY, '> /dev/full 2> /dev/full')
  t.equal((await send(running.url, '/api/audit/logs')).status, 401)
  t.equal((await send(running.url, '/api/health')).status, 200)
  await stops(t, running)
})

t.test(
  'a gateway counts the log lines dropped for a stopped reader and reports them when it reads again',
  async (t) => {
    // Their lines are larger than the buffer, which has a megabyte.
    const REQUESTS = 3000
    const { path, read } = await fullPipe(t)
    const { program, url } = await run(t, GATEWAY, `> ${path}`)
    await requests(url, REQUESTS)

    const lines = read()
    const reports = () => lines.filter((line) => line.includes('log lines dropped')).map((line) => JSON.parse(line))
    const dropped = (): number => reports().reduce((sum, report) => sum + report.dropped, 0)
    const written = (): number => lines.filter((line) => line.includes('/xxx')).length
    await eventually(() => written() + dropped() === REQUESTS)
    t.ok(dropped() > 0)
    t.ok(reports().every(({ level }) => level === 40))
    program.signal('SIGTERM')
    await program.exited
  }
)

t.test('a gateway writes buffered log lines when the disk has room again', async (t) => {
  const file = join(t.testdir(), 'log')
  const { program, url } = await run(t, GATEWAY, `>> ${file}`)
  await eventually(() => readFileSync(file, 'utf8').includes('listening at'))
  const limitFile = (bytes: string): unknown =>
    execFileSync('prlimit', ['--pid', String(program.pid), `--fsize=${bytes}:`])

  limitFile('1')
  await send(url, '/while-the-disk-is-full')
  t.equal((await send(url, '/api/health')).status, 200)
  limitFile('unlimited')
  await eventually(() => readFileSync(file, 'utf8').includes('/while-the-disk-is-full'))

  program.signal('SIGTERM')
  t.same(await program.exited, { code: 0, signal: null })
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  t.match(
    lines.map((line) => JSON.parse(line).msg).filter((msg) => msg !== 'request'),
    [/^listening at/, 'stopping', 'stopped']
  )
})

t.test('a gateway whose audit file and stderr are blocked stops within its grace period', async (t) => {
  const { path } = await fullPipe(t)
  const { program, url } = await run(t, GATEWAY, `2> ${path}`)
  t.equal((await send(url, '/api/audit/logs')).status, 401)
  program.signal('SIGTERM')
  t.same(await program.exited, { code: 0, signal: null })
  t.match(program.stdout, 'audit records dropped')
  t.notMatch(program.stdout, 'shutdown deadline exceeded')
})
