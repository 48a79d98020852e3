import { execFileSync } from 'node:child_process'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import type { Child } from '../helper/child.js'
import { eventually } from '../helper/eventually.js'
import { type HttpResponse, send } from '../helper/http.js'
import { startProgram } from '../helper/program.js'
import { openClient } from '../helper/raw-client.js'
import { relayToken } from '../helper/relay-rules.js'

const PROGRAM = 'dist/src/relay/main.js'
const SECRET = '0123456789abcdef'.repeat(4)
const KEY = 'fedcba9876543210'.repeat(4)

interface RunningProgram {
  readonly program: Child
  readonly url: string
}

/** Starts the built relay as a production process. */
const runRelay = async (t: Test, env: Readonly<Record<string, string>> = {}): Promise<RunningProgram> => {
  const program = await startProgram(t, PROGRAM, {
    NODE_ENV: 'production',
    RELAY_PORT: '0',
    REALTIME_HMAC_SECRET: SECRET,
    REALTIME_API_KEY: KEY,
    RELAY_WARM_UP: 'false',
    ...env
  })
  const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
  return { program, url }
}

const token = (user: string): string => signJwt({ sub: user }, secretKey(SECRET), { lifetimeSeconds: 60 })

const connected = async (t: Test, url: string) => {
  const client = await openClient(t, url)
  await client.request({ id: 1, connect: { token: token('42') } })
  return client
}

const sendPublication = (url: string, channel: string, key = KEY): Promise<HttpResponse> =>
  send(url, '/api/publish', {
    method: 'POST',
    body: JSON.stringify({ channel, data: 1 }),
    headers: { 'x-api-key': key }
  })

const publish = async (url: string, channel: string): Promise<unknown> =>
  JSON.parse((await sendPublication(url, channel)).body)

t.test(
  'a relay with invalid settings prints one line per error and per misspelled variable, and exits with 1',
  async (t) => {
    const program = await startProgram(t, PROGRAM, {
      NODE_ENV: 'production',
      RELAY_PORT: 'http',
      REALTIME_HMAC_SECRET: 'hunter2',
      REALTIME_APIKEY: KEY
    })

    t.same(await program.exited, { code: 1, signal: null })
    t.match(program.stderr, /^relay: RELAY_PORT must /m)
    t.match(program.stderr, /^relay: REALTIME_HMAC_SECRET /m)
    t.match(
      program.stderr,
      /^relay: REALTIME_API_KEY is required\nrelay: REALTIME_APIKEY is not a setting. Did you mean REALTIME_API_KEY\?\n$/m
    )
    t.notMatch(program.stderr, /hunter2|^\s+at |node:internal/m)
    t.equal(program.stdout, '')
  }
)

t.test('a relay that gets SIGTERM', async (t) => {
  const { program, url } = await runRelay(t)
  const silent = await openClient(t, url)
  const stream = await fetch(`${url}/connection/http_stream`, {
    method: 'POST',
    body: JSON.stringify({ id: 1, connect: { token: token('42') } })
  })
  const clients = await Promise.all(Array.from({ length: 200 }, () => connected(t, url)))
  t.equal((await send(url, '/health')).status, 200)
  const closed = clients.map((client) => client.closed)
  program.signal('SIGTERM')
  await Promise.race(closed)

  t.test('the relay accepts no new connections', async (t) => {
    await t.rejects(send(url, '/health'), { code: 'ECONNREFUSED' })
  })

  t.test('the relay closes 200 clients and one that has not connected with 3001', async (t) => {
    t.same(new Set(await Promise.all([...closed, silent.closed])), new Set(['3001 shutdown']))
  })

  t.test('the relay ends HTTP streams with a disconnect push', async (t) => {
    t.match(await stream.text(), /\{"push":\{"disconnect":\{"code":3001,"reason":"shutdown"\}\}\}\n$/)
  })

  t.test('the relay exits with 0', async (t) => {
    t.same(await program.exited, { code: 0, signal: null })
    t.match(program.stdout, 'stopped')
  })
})

const OLD = { channel: { namespaces: [{ name: 'old', allow_subscribe_for_client: true }] } }
const NEW = { channel: { namespaces: [{ name: 'new', allow_subscribe_for_client: true }] } }

/** Starts a relay that gets SIGHUP while it reads its configuration file, which is replaced in the meantime. */
const runWithSignal = async (t: Test, workers: string) => {
  const folder = t.testdir({ key: KEY, 'next.json': JSON.stringify(OLD) })
  const [file, keyFile] = [join(folder, 'relay.json'), join(folder, 'key')]
  execFileSync('mkfifo', [file])
  const program = await startProgram(t, PROGRAM, {
    RELAY_PORT: '0',
    RELAY_WORKERS: workers,
    RELAY_CONFIG: file,
    REALTIME_HMAC_SECRET: SECRET,
    REALTIME_API_KEY_FILE: keyFile
  })
  // Opening a FIFO for writing waits until the relay reads it; the relay then waits for the text.
  const pipe = await open(file, 'w')
  renameSync(join(folder, 'next.json'), file)
  program.signal('SIGHUP')
  await pipe.writeFile(JSON.stringify({ channel: { namespaces: [{ name: 'first' }] } }))
  await pipe.close()
  const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
  const write = (config: unknown): void =>
    writeFileSync(file, typeof config === 'string' ? config : JSON.stringify(config))
  const reload = async (outcome: 'config reloaded' | 'config reload rejected'): Promise<string> => {
    const lines = (): string[] => program.stdout.split('\n').filter((line) => line.includes(outcome))
    const before = lines().length
    program.signal('SIGHUP')
    return eventually(() => lines()[before], { label: outcome })
  }
  return { program, url, keyFile, write, reload }
}

for (const workers of ['1', '2']) {
  t.test(`SIGHUP to a relay with ${workers} worker(s)`, async (t) => {
    const { program, url, keyFile, write, reload } = await runWithSignal(t, workers)

    t.test('after SIGHUP during start-up the relay reloads the file when it listens', async (t) => {
      await program.waitForLine('config reloaded')
      t.match(await publish(url, 'old:1'), { result: {} })
      t.match(await publish(url, 'first:1'), { error: { code: 102 } })
    })

    const invalidFiles: [title: string, config: unknown, error: string][] = [
      ['is not JSON', '{', 'is not valid JSON: line 1, column 2'],
      ['has an unknown option', { client: { dance: true } }, 'dance'],
      ['violates a rule', { channel: { namespaces: [{ name: 'x', history_size: 5 }] } }, 'name']
    ]
    for (const [title, config, error] of invalidFiles) {
      t.test(`on SIGHUP a file that ${title} is rejected and the old configuration stays active`, async (t) => {
        write(config)
        t.match(await reload('config reload rejected'), error)
        t.match(await publish(url, 'old:1'), { result: {} })
      })
    }

    t.test('after SIGHUP the new namespaces apply to connected clients', async (t) => {
      const client = await connected(t, url)
      t.match(await client.request({ id: 2, subscribe: { channel: 'new:1' } }), { error: { code: 102 } })
      write(NEW)
      await reload('config reloaded')

      t.match(await client.request({ id: 3, subscribe: { channel: 'new:1' } }), { id: 3, subscribe: {} })
      t.match(await publish(url, 'new:1'), { result: {} })
      t.match(await client.next(), { push: { channel: 'new:1', pub: { data: 1 } } })
      t.match(await publish(url, 'old:1'), { error: { code: 102 } })
    })

    t.test('a reload logs the options that need a restart or reconnect, and changes the log level', async (t) => {
      write({ ...NEW, node: { name: 'another' }, client: { ping_interval: '60s' }, log: { level: 'error' } })
      t.match(JSON.parse(await reload('config reloaded')), {
        needsRestart: ['node.name'],
        needsReconnect: ['client.ping_interval']
      })
      // Each request causes a warning, which the log level hides. With several workers, each gets some of the connections.
      const before = program.stdout.length
      for (let count = 0; count < 4 * Number(workers); count++) await sendPublication(url, 'new:1', 'no key')
      write(NEW)
      await reload('config reloaded')
      t.notMatch(program.stdout.slice(before), /"level":40/)
      await sendPublication(url, 'new:1', 'no key')
      t.ok(await eventually(() => /"level":40/.test(program.stdout.slice(before))))
    })

    t.test('on SIGHUP the relay reads the files of its secrets again', async (t) => {
      t.equal((await sendPublication(url, 'new:1')).status, 200)
      const newKey = 'c0ffee00'.repeat(8)
      writeFileSync(keyFile, newKey)
      await reload('config reloaded')

      // Each on a new connection, which any of the workers may accept.
      for (let index = 0; index < 4; index++) {
        t.equal((await sendPublication(url, 'new:1', newKey)).status, 200)
        t.equal((await sendPublication(url, 'new:1')).status, 401)
      }
    })
  })
}

t.test('a relay starts although SIGHUP kills its workers during their start-up', async (t) => {
  const program = await startProgram(t, PROGRAM, {
    RELAY_PORT: '0',
    RELAY_WORKERS: '2',
    REALTIME_HMAC_SECRET: SECRET,
    REALTIME_API_KEY: KEY
  })
  const children = `/proc/${program.pid}/task/${program.pid}/children`
  const signalled = new Set<number>()
  // On a busy machine the workers may be faster than this loop: they then ignore the signal, and no third one is started.
  await eventually(() => {
    for (const pid of readFileSync(children, 'utf8').split(' ').filter(Boolean).map(Number)) {
      if (!signalled.has(pid) && signalled.size < 4) process.kill(pid, 'SIGHUP')
      signalled.add(pid)
    }
    return signalled.size >= 3 || program.stdout.includes('listening at')
  })

  t.ok(await program.waitForLine('listening at'))
})

t.test('the relay logs options of the file that have no effect', async (t) => {
  const file = JSON.stringify({ websocket: { read_buffer_size: 512 }, proxies: [{ name: 'aa', endpoint: 'grpc://x' }] })
  const { program } = await runRelay(t, { RELAY_CONFIG: join(t.testdir({ 'relay.json': file }), 'relay.json') })
  t.match(
    await program.waitForLine('read_buffer_size'),
    /"level":40.*"option":"websocket.read_buffer_size has no effect: Node.js manages its buffers","msg":"option without effect"/
  )
})

t.test('a relay in production', async (t) => {
  const { program, url } = await runRelay(t, {
    RELAY_WARM_UP: 'true',
    LOG_LEVEL: 'debug',
    TRUST_PROXIES: '10.0.0.1',
    RELAY_WORKRES: '2'
  })

  t.test('the relay logs a warning for variables that resemble a setting', async (t) => {
    t.match(await program.waitForLine('TRUST_PROXIES'), /"resembles":"TRUST_PROXY","msg":"unknown setting"/)
    t.match(await program.waitForLine('RELAY_WORKRES'), /"resembles":"RELAY_WORKERS","msg":"unknown setting"/)
  })

  for (const workers of ['1', '2']) {
    t.test(`another relay with ${workers} worker(s) at the same port names RELAY_PORT and exits`, async (t) => {
      const other = await startProgram(t, PROGRAM, {
        RELAY_PORT: new URL(url).port,
        RELAY_WORKERS: workers,
        REALTIME_HMAC_SECRET: SECRET,
        REALTIME_API_KEY: KEY
      })

      t.same(await other.exited, { code: 1, signal: null })
      t.match(other.stderr, /^relay: .*RELAY_PORT must be free .*EADDRINUSE/)
    })
  }

  t.test('the warm-up connects clients before the start, which leave no trace in metrics and channels', async (t) => {
    const { clients } = JSON.parse(await program.waitForLine('warm-up finished'))
    t.ok(clients > 0, `${clients} clients`)
    const { body } = await send(url, '/metrics')
    t.match(body, /^centrifugo_node_num_clients 0$/m)
    t.notMatch(body, /^centrifugo_client_connections_accepted\{.* [1-9]/m)
    t.notMatch(body, /^.*channel_namespace="floor".* [1-9]/m)
    t.ok(program.stdout.indexOf('warm-up finished') < program.stdout.indexOf('listening at'))
  })

  t.test('/health and /metrics respond to loopback requests, /metrics not to proxied ones', async (t) => {
    const client = await connected(t, url)
    t.match(await client.request({ id: 2, subscribe: { channel: 'floor:1' } }), { subscribe: { recoverable: true } })
    await publish(url, 'floor:1')
    await client.next()

    t.match((await send(url, '/health')).body, '"ok"')
    const { body } = await send(url, '/metrics')
    t.match(body, /^centrifugo_node_num_clients 1$/m)
    t.match(body, /^centrifugo_node_num_subscriptions 1$/m)
    t.match(body, /^centrifugo_node_messages_sent_count\{type="publication",channel_namespace="floor"\} 1$/m)
    t.match(
      body,
      /^centrifugo_transport_messages_sent\{transport="websocket",frame_type="push_publication",channel_namespace="floor"\} 1$/m
    )
    t.equal((await send(url, '/metrics', { headers: { 'x-forwarded-for': '10.0.0.1' } })).status, 404)
  })

  t.test('a token of another secret is rejected with 3500', async (t) => {
    const client = await openClient(t, url)
    client.send({ id: 1, connect: { token: relayToken({ sub: '42' }) } })

    t.equal(await client.closed, '3500 invalid token')
    t.notMatch(program.stdout, /"level":(50|60)/)
  })
})

t.test('log.file', async (t) => {
  const folder = t.testdir()
  const logFile = join(folder, 'relay.log')
  const configFile = join(folder, 'relay.json')
  const env = {
    NODE_ENV: 'production',
    RELAY_PORT: '0',
    REALTIME_HMAC_SECRET: SECRET,
    REALTIME_API_KEY: KEY,
    RELAY_WARM_UP: 'false',
    RELAY_CONFIG: configFile
  }
  const read = (): string => readFileSync(logFile, 'utf8')

  for (const workers of ['1', '2']) {
    t.test(`with ${workers} worker(s) the log is appended to the file, which SIGHUP opens again`, async (t) => {
      writeFileSync(logFile, 'an older line\n')
      writeFileSync(configFile, JSON.stringify({ log: { file: logFile } }))
      const program = await startProgram(t, PROGRAM, { ...env, RELAY_WORKERS: workers })
      await eventually(() => read().includes('listening at'))
      t.match(read(), /^an older line\n\{/)

      renameSync(logFile, `${logFile}.1`)
      program.signal('SIGHUP')
      await eventually(() => read().includes('config reloaded'))
      t.notMatch(readFileSync(`${logFile}.1`, 'utf8'), 'config reloaded')
    })
  }

  t.test('a log file that cannot be opened stops the start', async (t) => {
    writeFileSync(configFile, JSON.stringify({ log: { file: folder } }))
    const program = await startProgram(t, PROGRAM, env)
    t.same(await program.exited, { code: 1, signal: null })
    t.equal(program.stderr, 'relay: RELAY_CONFIG: log.file cannot be opened (EISDIR)\n')
  })
})
