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

t.test('a relay with an invalid configuration', async (t) => {
  t.test('the relay prints one line per error and exits with 1', async (t) => {
    const program = await startProgram(t, PROGRAM, {
      NODE_ENV: 'production',
      RELAY_PORT: 'http',
      REALTIME_API_KEY: 'hunter2'
    })

    t.same(await program.exited, { code: 1, signal: null })
    t.match(program.stderr, /^relay: RELAY_PORT must /m)
    t.match(program.stderr, /^relay: REALTIME_HMAC_SECRET /m)
    t.notMatch(program.stderr, /hunter2|^\s+at |node:internal/m)
    t.equal(program.stdout, '')
  })

  for (const workers of ['1', '2']) {
    t.test(`the relay with ${workers} worker(s) names RELAY_PORT if the port is in use`, async (t) => {
      const { url } = await runRelay(t)
      const program = await startProgram(t, PROGRAM, {
        RELAY_PORT: new URL(url).port,
        RELAY_WORKERS: workers,
        REALTIME_HMAC_SECRET: SECRET,
        REALTIME_API_KEY: KEY
      })

      t.same(await program.exited, { code: 1, signal: null })
      t.match(program.stderr, /^relay: .*RELAY_PORT must be free .*EADDRINUSE/)
    })
  }

  t.test('the relay names the setting that an unknown variable resembles', async (t) => {
    const program = await startProgram(t, PROGRAM, { REALTIME_HMAC_SECRET: SECRET, REALTIME_APIKEY: KEY })

    t.same(await program.exited, { code: 1, signal: null })
    t.equal(
      program.stderr,
      'relay: REALTIME_API_KEY is required\nrelay: REALTIME_APIKEY is not a setting. Did you mean REALTIME_API_KEY?\n'
    )
  })
})

t.test('a started relay logs a warning for variables that resemble a setting', async (t) => {
  const { program } = await runRelay(t, { TRUST_PROXIES: '10.0.0.1', RELAY_WORKRES: '2' })

  t.match(await program.waitForLine('TRUST_PROXIES'), /"resembles":"TRUST_PROXY","msg":"unknown setting"/)
  t.match(await program.waitForLine('RELAY_WORKRES'), /"resembles":"RELAY_WORKERS","msg":"unknown setting"/)
})

t.test('shutdown of the relay by a signal', async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    t.test(`on ${signal} the relay closes its clients with 3001 and exits with 0`, async (t) => {
      const { program, url } = await runRelay(t)
      const [live, silent] = [await connected(t, url), await openClient(t, url)]
      t.equal((await send(url, '/health')).status, 200)
      program.signal(signal)

      t.equal(await live.closed, '3001 shutdown')
      t.equal(await silent.closed, '3001 shutdown')
      t.same(await program.exited, { code: 0, signal: null })
      t.match(program.stdout, 'stopped')
    })
  }

  t.test('on SIGTERM the relay ends HTTP streams with a disconnect push', async (t) => {
    const { program, url } = await runRelay(t)
    const response = await fetch(`${url}/connection/http_stream`, {
      method: 'POST',
      body: JSON.stringify({ id: 1, connect: { token: token('42') } })
    })
    program.signal('SIGTERM')

    t.match(await response.text(), /\{"push":\{"disconnect":\{"code":3001,"reason":"shutdown"\}\}\}\n$/)
    t.same(await program.exited, { code: 0, signal: null })
  })

  t.test('a relay that shuts down closes 200 clients and accepts no new connections', async (t) => {
    const { program, url } = await runRelay(t)
    const clients = await Promise.all(Array.from({ length: 200 }, () => connected(t, url)))
    const closed = clients.map(async (client) => {
      t.equal(await client.closed, '3001 shutdown')
    })
    program.signal('SIGTERM')
    await Promise.race(closed)
    await t.rejects(send(url, '/health'), { code: 'ECONNREFUSED' })
    await Promise.all(closed)

    t.same(await program.exited, { code: 0, signal: null })
  })
})

t.test('SIGHUP to a running relay', async (t) => {
  const setUp = async (t: Test) => {
    const file = join(t.testdir(), 'relay.json')
    const write = (config: unknown): void =>
      writeFileSync(file, typeof config === 'string' ? config : JSON.stringify(config))
    write({ channel: { namespaces: [{ name: 'old', allow_subscribe_for_client: true }] } })
    return { write, ...(await runRelay(t, { RELAY_CONFIG: file })) }
  }

  t.test('after SIGHUP the new namespaces apply to connected clients', async (t) => {
    const { write, program, url } = await setUp(t)
    const client = await connected(t, url)
    t.match(await client.request({ id: 2, subscribe: { channel: 'new:1' } }), { error: { code: 102 } })
    write({ channel: { namespaces: [{ name: 'new', allow_subscribe_for_client: true }] } })
    program.signal('SIGHUP')
    await program.waitForLine('config reloaded')

    t.match(await client.request({ id: 3, subscribe: { channel: 'new:1' } }), { id: 3, subscribe: {} })
    t.match(await publish(url, 'new:1'), { result: {} })
    t.match(await client.next(), { push: { channel: 'new:1', pub: { data: 1 } } })
    t.match(await publish(url, 'old:1'), { error: { code: 102 } })
  })

  const invalidFiles: [title: string, config: unknown, error: string][] = [
    ['is not JSON', '{', 'is not valid JSON: line 1, column 2'],
    ['has an unknown option', { client: { dance: true } }, 'dance'],
    ['violates a rule', { channel: { namespaces: [{ name: 'x', history_size: 5 }] } }, 'name']
  ]
  for (const [title, config, error] of invalidFiles) {
    t.test(`on SIGHUP a file that ${title} is rejected and the old configuration stays active`, async (t) => {
      const { write, program, url } = await setUp(t)
      write(config)
      program.signal('SIGHUP')
      const line = await program.waitForLine('config reload rejected')

      t.match(line, error)
      t.match(await publish(url, 'old:1'), { result: {} })
    })
  }
})

for (const workers of ['1', '2']) {
  t.test(`on SIGHUP a relay with ${workers} worker(s) reads the files of its secrets again`, async (t) => {
    const file = join(t.testdir({ key: KEY }), 'key')
    const { program, url } = await runRelay(t, {
      RELAY_WORKERS: workers,
      REALTIME_API_KEY: '',
      REALTIME_API_KEY_FILE: file
    })
    t.equal((await sendPublication(url, 'global:all')).status, 200)
    const newKey = 'c0ffee00'.repeat(8)
    writeFileSync(file, newKey)
    program.signal('SIGHUP')
    await program.waitForLine('config reloaded')

    // Each on a new connection, which any of the workers may accept.
    for (let index = 0; index < 4; index++) {
      t.equal((await sendPublication(url, 'global:all', newKey)).status, 200)
      t.equal((await sendPublication(url, 'global:all')).status, 401)
    }
  })
}

t.test('SIGHUP during start-up', async (t) => {
  for (const workers of ['1', '2']) {
    t.test(
      `a relay with ${workers} worker(s) that receives SIGHUP during start-up reloads the file when it listens`,
      async (t) => {
        const folder = t.testdir({ 'new.json': JSON.stringify({ channel: { namespaces: [{ name: 'new' }] } }) })
        const file = join(folder, 'relay.json')
        execFileSync('mkfifo', [file])
        const program = await startProgram(t, PROGRAM, {
          RELAY_PORT: '0',
          RELAY_WORKERS: workers,
          RELAY_CONFIG: file,
          REALTIME_HMAC_SECRET: SECRET,
          REALTIME_API_KEY: KEY
        })
        // Opening a FIFO for writing waits until the relay reads it; the relay then waits for the text.
        const pipe = await open(file, 'w')
        renameSync(join(folder, 'new.json'), file)
        program.signal('SIGHUP')
        await pipe.writeFile(JSON.stringify({ channel: { namespaces: [{ name: 'old' }] } }))
        await pipe.close()

        const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
        await program.waitForLine('config reloaded')
        t.match(await publish(url, 'new:1'), { result: {} })
        t.match(await publish(url, 'old:1'), { error: { code: 102 } })
      }
    )
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

    await program.waitForLine('listening at')
  })
})

t.test('a second signal during shutdown', async (t) => {
  t.test('a second SIGINT right after the first is ignored', async (t) => {
    const { program, url } = await runRelay(t)
    const client = await connected(t, url)
    program.signal('SIGINT')
    program.signal('SIGINT')

    t.equal(await client.closed, '3001 shutdown')
    t.same(await program.exited, { code: 0, signal: null })
  })

  t.test('a second SIGTERM after two seconds ends the relay at once with 1', async (t) => {
    const { program, url } = await runRelay(t)
    const client = await openClient(t, url)
    // Does not complete the close handshake, so that the relay keeps waiting.
    client.ws.pause()
    program.signal('SIGTERM')
    await program.waitForLine('stopping')
    // Signals within two seconds of the first are ignored. The relay waits five seconds for the close handshake.
    const repeat = setInterval(() => program.signal('SIGTERM'), 200)
    t.teardown(() => clearInterval(repeat))

    t.same(await program.exited, { code: 1, signal: null })
  })
})

t.test('a relay in production', async (t) => {
  const { program, url } = await runRelay(t, { RELAY_WARM_UP: 'true', LOG_LEVEL: 'debug' })

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
