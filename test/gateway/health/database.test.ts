import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { inspect } from 'node:util'
import { Client } from 'pg'
import { type Test, t } from 'tap'
import { DatabaseHealth, type DatabaseHealthOptions } from '../../../src/gateway/health/database-health.js'
import { portOf } from '../../helper/address.js'
import { eventually } from '../../helper/eventually.js'
import { freePort } from '../../helper/free-port.js'
import { startPostgres } from '../../helper/postgres.js'

/** Long enough for a busy machine. Tests of the timeout use a shorter one. */
const PATIENCE_MS = 60_000

const healthOf = (t: Test, url: string, options: DatabaseHealthOptions = {}): DatabaseHealth => {
  const health = new DatabaseHealth(url, { timeoutMs: PATIENCE_MS, ...options })
  t.teardown(() => health.close())
  return health
}

/** The clock advances by a second per call, so that no result is cached. */
const alwaysLater = (): (() => number) => {
  let now = 0
  return () => {
    now += 1_000
    return now
  }
}

t.test('the check of a real database', async (t) => {
  // One for these tests, because starting it takes longer than all checks.
  const postgres = await startPostgres(t)

  t.test('a running database is up, with a latency', async (t) => {
    const state = await healthOf(t, postgres.url).check()

    t.match(state, { status: 'up', latencyMs: Number })
    t.ok(state.status === 'up' && Number.isInteger(state.latencyMs) && state.latencyMs >= 0)
  })

  t.test('the database check measures the latency with the given clock', async (t) => {
    const health = healthOf(t, postgres.url, { now: alwaysLater() })

    t.same(await health.check(), { status: 'up', latencyMs: 1_000 })
  })

  t.test('a killed database is down, and up again after a restart', async (t) => {
    const health = healthOf(t, postgres.url, { now: alwaysLater() })
    t.match(await health.check(), { status: 'up' })

    await postgres.kill()
    t.same(await health.check(), { status: 'down', reason: 'refused' })

    await postgres.restart()
    t.match(await health.check(), { status: 'up' })
  })

  t.test('a database that hangs times out, and is up again when it continues', async (t) => {
    await postgres.pause()
    t.same(await healthOf(t, postgres.url, { timeoutMs: 200 }).check(), { status: 'down', reason: 'timeout' })

    postgres.resume()
    t.match(await healthOf(t, postgres.url).check(), { status: 'up' })
  })

  t.test('a database check leaves no connection open', async (t) => {
    const { url } = postgres
    await healthOf(t, url).check()

    const others = "SELECT count(*)::int AS others FROM pg_stat_activity WHERE application_name = 'gatehouse'"
    const client = new Client(url)
    await client.connect()
    t.teardown(() => client.end())

    // PostgreSQL ends the sessions of closed connections a moment later, also that of the check that has timed out.
    await eventually(async () => (await client.query(others)).rows[0].others === 0)
  })

  t.test('the reason of a failure is reported', async (t) => {
    const { url } = await startPostgres(t, { auth: 'scram-sha-256' })
    const changed = (change: (url: URL) => void): string => {
      const other = new URL(url)
      change(other)
      return other.href
    }
    const closedPort = await freePort()

    const failures: readonly (readonly [title: string, url: string, reason: string])[] = [
      ['a wrong password', changed((url) => (url.password = 'wrong')), 'authentication'],
      ['a missing password', changed((url) => (url.password = '')), 'authentication'],
      ['an unknown user', changed((url) => (url.username = 'nobody')), 'authentication'],
      ['an unknown database', changed((url) => (url.pathname = '/nonexistent')), 'unknown database'],
      ['an unknown host name', changed((url) => (url.hostname = 'nonexistent.invalid')), 'unreachable'],
      ['a missing socket file', 'postgres://%2Fnonexistent/postgres', 'unreachable'],
      ['a closed port', changed((url) => (url.port = `${closedPort}`)), 'refused'],
      ['a server without TLS where TLS is required', changed((url) => (url.search = '?sslmode=verify-full')), 'error'],
      ['a missing certificate', changed((url) => (url.search = '?sslrootcert=/nonexistent')), 'error'],
      ['a malformed address', 'postgres://127.0.0.1:99999/postgres', 'error']
    ]
    for (const [title, url, reason] of failures) {
      t.test(`${title} is "${reason}"`, async (t) => {
        t.same(await healthOf(t, url).check(), { status: 'down', reason })
      })
    }
  })

  t.test('an unknown user is an authentication failure, even with trust authentication', async (t) => {
    t.same(await healthOf(t, postgres.url.replace(/\/\/[^:]+:/, '//nobody:')).check(), {
      status: 'down',
      reason: 'authentication'
    })
  })
})

// Messages of the PostgreSQL protocol.
const message = (type: string, body: string | Buffer): Buffer => {
  const bytes = Buffer.from(body)
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(4 + bytes.length, 1)
  return Buffer.concat([head, bytes])
}
const READY = message('Z', 'I')
const AUTHENTICATED = Buffer.concat([message('R', Buffer.alloc(4)), READY])
const RESULT = Buffer.concat([message('C', 'SELECT 1\0'), READY])
const KERBEROS = message('R', Buffer.from([0, 0, 0, 7]))
const TERMINATED = message('E', 'SFATAL\0C57P01\0Mterminated test_owner:secret@db.internal\0\0')

/** The response to an SSLRequest. */
const TLS = Symbol('TLS')

type Reaction = Buffer | typeof TLS | null

interface FakeDatabase {
  readonly url: string
  /** All connections. */
  readonly connections: Socket[]
  /** Messages of clients in order of arrival. */
  readonly received: string[]
  /** Resolves with the next connection. */
  readonly connected: Promise<Socket>
}

/** A server that responds to each message with the next of these; `null` closes the connection. */
const startFake = async (t: Test, ...script: readonly Reaction[]): Promise<FakeDatabase> => {
  const received: string[] = []
  const connections: Socket[] = []
  const follow = (socket: Socket, [reaction, ...rest]: readonly Reaction[]): void => {
    socket.on('error', () => {})
    socket.once('data', (data) => {
      received.push(data.toString('latin1'))
      if (reaction === null) socket.destroy()
      else if (reaction === TLS) {
        socket.write('S')
        follow(new TLSSocket(socket, { isServer: true, ...selfSigned() }), rest)
      } else {
        if (reaction !== undefined) socket.write(reaction)
        follow(socket, rest)
      }
    })
  }
  const server = createServer((socket) => {
    connections.push(socket)
    follow(socket, script)
  })
  const connected = once(server, 'connection').then(([socket]) => socket)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const socket of connections) socket.destroy()
    server.close()
  })
  const port = portOf(server)
  return { url: `postgres://test_owner:secret@127.0.0.1:${port}/app`, connections, received, connected }
}

/** A minimal self-signed certificate. */
const selfSigned = (): { key: string; cert: string } => {
  const der = (tag: number, ...parts: readonly Buffer[]): Buffer => {
    const content = Buffer.concat(parts)
    const size = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255]
    return Buffer.concat([Buffer.from([tag, ...size]), content])
  }
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = der(0x30, Buffer.from('06082a8648ce3d040302', 'hex'))
  const noName = der(0x30)
  const validity = der(0x30, der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('490101000000Z')))
  const serial = der(0x02, Buffer.from([1]))
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const content = der(0x30, serial, algorithm, noName, validity, noName, spki)
  const signature = der(0x03, Buffer.from([0]), sign('sha256', content, privateKey))
  const base64 = der(0x30, content, algorithm, signature).toString('base64')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`
  }
}

/** Replaces timers of this length by ones that the test fires. */
const interceptTimers = (t: Test, length: number): (() => void)[] => {
  const caught: (() => void)[] = []
  const { setTimeout } = globalThis
  t.intercept(globalThis, 'setTimeout', {
    value: (callback: () => void, ms?: number, ...args: []): NodeJS.Timeout => {
      if (ms !== length) return setTimeout(callback, ms, ...args)
      caught.push(callback)
      return setTimeout(() => {}, 0)
    }
  })
  return caught
}

t.test('the check', async (t) => {
  t.test('the database check sends SELECT 1 and closes the connection', async (t) => {
    const { url, received } = await startFake(t, AUTHENTICATED, RESULT, null)

    t.match(await healthOf(t, url).check(), { status: 'up' })
    t.match(received, [/test_owner/, /^Q....SELECT 1\0$/s, /^X/])
    t.equal(received.length, 3)
  })

  t.test('concurrent callers share one database check', async (t) => {
    const { url, connections } = await startFake(t, AUTHENTICATED, RESULT, null)
    const health = healthOf(t, url)

    const states = await Promise.all([health.check(), health.check(), health.check()])

    t.equal(connections.length, 1)
    for (const state of states) t.equal(state, states[0])
  })

  for (const [title, script] of [
    ['up', [AUTHENTICATED, RESULT, null]],
    ['down', [null]]
  ] as const) {
    t.test(`the result "${title}" is cached for a second`, async (t) => {
      const { url, connections } = await startFake(t, ...script)
      let now = 5_000
      const health = healthOf(t, url, { now: () => now })

      t.match(await health.check(), { status: title })
      now += 999
      t.match(await health.check(), { status: title })
      t.equal(connections.length, 1, 'within the second')

      now += 1
      t.match(await health.check(), { status: title })
      t.equal(connections.length, 2, 'after it')
    })
  }

  const FAILURES: readonly (readonly [title: string, script: readonly Reaction[]])[] = [
    ['breaks the connection before the login', [null]],
    ['breaks the connection before the response', [AUTHENTICATED, null]],
    ['rejects the login with a message that contains secrets', [TERMINATED]],
    ['ends between the login and the query', [Buffer.concat([AUTHENTICATED, TERMINATED]), null]],
    ['ends instead of a response', [AUTHENTICATED, TERMINATED]],
    ['requests Kerberos authentication', [KERBEROS]],
    ['truncates a message', [message('R', '')]]
  ]
  for (const [title, script] of FAILURES) {
    t.test(`the result is an error if the database ${title}`, async (t) => {
      const { url } = await startFake(t, ...script)

      t.same(await healthOf(t, url).check(), { status: 'down', reason: 'error' })
    })
  }

  t.test('a database that closes right after its response is up', async (t) => {
    const { url } = await startFake(t, AUTHENTICATED, Buffer.concat([RESULT, TERMINATED]), null)

    t.match(await healthOf(t, url).check(), { status: 'up' })
  })

  for (const [when, script] of [
    ['before the login', []],
    ['before the response', [AUTHENTICATED]]
  ] as const) {
    t.test(`the database check times out after two seconds if the database is silent ${when}`, async (t) => {
      const fake = await startFake(t, ...script)
      const twoSeconds = interceptTimers(t, 2_000)

      const state = new DatabaseHealth(fake.url).check()
      const socket = await fake.connected
      while (fake.received.length <= script.length) await once(socket, 'data')
      t.equal(twoSeconds.length, 1, 'one time limit covers all steps')
      for (const fire of twoSeconds) fire()

      t.same(await state, { status: 'down', reason: 'timeout' })
    })
  }

  t.test('an unsupported message over TLS does not end the process', async (t) => {
    const { url, received } = await startFake(t, TLS, KERBEROS)

    t.same(await healthOf(t, `${url}?sslmode=no-verify`).check(), { status: 'down', reason: 'error' })
    t.match(received[1], /test_owner/, 'the login went through')
  })

  t.test('close ends a running database check', async (t) => {
    const fake = await startFake(t)
    const health = healthOf(t, fake.url)
    const state = health.check()
    const closed = once(await fake.connected, 'close')

    await health.close()

    t.same(await state, { status: 'down', reason: 'error' })
    await closed
  })

  t.test('a closed database check opens no connection', async (t) => {
    const { url, connections } = await startFake(t, AUTHENTICATED, RESULT, null)
    const health = healthOf(t, url, { now: alwaysLater() })

    await health.close()

    t.same(await health.check(), { status: 'down', reason: 'error' })
    t.equal(connections.length, 0)
  })

  t.test('the database URL is not shown when the check is printed', async (t) => {
    const text = inspect(new DatabaseHealth('postgres://test_owner:secret@db.internal/app'), {
      depth: 10,
      showHidden: true
    })

    t.notMatch(text, /test_owner|secret|internal/)
  })
})
