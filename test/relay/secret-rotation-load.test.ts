import t, { type Test } from 'tap'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import { eventually } from '../helper/eventually.js'
import { type JwksServer, newSigningKey, publicJwk, signToken, startJwksServer } from '../helper/jwks-server.js'
import { type EdgeRelay, officialClient, startRelay } from '../helper/relay.js'
import { API_KEY, type ConfigFile, configOf, HMAC_SECRET } from '../helper/relay-rules.js'

const NEW_SECRET = 'the secret of relay tokens after that one'
const NEW_KEY = 'the key of the publish API after that one'
const CHANNEL = 'room:1'
const CLIENTS = 8
/** Publications before, during and after each step. */
const PUBLICATIONS = 40

const file = (token: object = {}): ConfigFile => ({
  client: { token },
  channel: {
    namespaces: [
      { name: 'room', allow_subscribe_for_client: true, history_size: 1000, history_ttl: '300s', force_recovery: true }
    ]
  }
})

/** Subscribers and a publisher that use the current secrets of the backend, and what went wrong for them. */
class Load {
  readonly problems: string[] = []
  key = API_KEY
  sign: () => Promise<string> | string
  #published = 0
  readonly #received: number[][] = []
  readonly #relay: EdgeRelay
  readonly #t: Test
  readonly #clients: ReturnType<typeof officialClient>[] = []

  constructor(t: Test, relay: EdgeRelay, sign: () => Promise<string> | string) {
    this.#t = t
    this.#relay = relay
    this.sign = sign
  }

  /** A new client connects and subscribes. */
  async connect(): Promise<void> {
    const client = officialClient(this.#t, this.#relay, 'websocket', { getToken: async () => this.sign() })
    const received: number[] = []
    this.#received.push(received)
    this.#clients.push(client)
    client.on('disconnected', ({ code, reason }) => this.problems.push(`disconnected ${code} ${reason}`))
    client.on('error', ({ error }) => this.problems.push(`error ${error.code} ${error.message}`))
    const subscription = client.newSubscription(CHANNEL, { since: { offset: 0, epoch: '' } })
    subscription.on('publication', ({ data }) => received.push(data))
    subscription.on('unsubscribed', ({ code, reason }) => this.problems.push(`unsubscribed ${code} ${reason}`))
    client.connect()
    await client.ready()
    subscription.subscribe()
    await subscription.ready()
  }

  /** Publishes while further clients connect, and half of the others reconnect with a new token. */
  async run(): Promise<void> {
    const publishing = this.publish(PUBLICATIONS)
    await Promise.all([this.connect(), this.connect()])
    for (const client of this.#clients.slice(0, this.#clients.length / 2)) await this.#reconnect(client)
    await publishing
    await eventually(() => this.#received.every(({ length }) => length === this.#published), { label: 'all received' })
  }

  /** As after a lost connection: the client obtains a new token and recovers. */
  async #reconnect(client: ReturnType<typeof officialClient>): Promise<void> {
    const problems = this.problems.length
    client.disconnect()
    this.problems.splice(problems)
    client.setToken('')
    client.connect()
    await client.ready()
  }

  async publish(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const headers = { 'x-api-key': this.key }
      const { status, body } = await this.#relay.api(
        'publish',
        { channel: CHANNEL, data: ++this.#published },
        { headers }
      )
      if (status !== 200 || body.includes('"error"')) this.problems.push(`publish ${status} ${body}`)
    }
  }

  /** Every client received every publication once and in order. */
  get isComplete(): boolean {
    const all = Array.from({ length: this.#published }, (_, index) => index + 1).join()
    return this.#received.every((received) => received.join() === all)
  }
}

const hmac = (secret: string) => () => signJwt({ sub: '42' }, secretKey(secret), { lifetimeSeconds: 3600 })

const startLoad = async (t: Test, relay: EdgeRelay, sign: () => Promise<string> | string): Promise<Load> => {
  const load = new Load(t, relay, sign)
  for (let n = 0; n < CLIENTS; n++) await load.connect()
  await load.run()
  return load
}

t.test('a rotation of REALTIME_HMAC_SECRET under load rejects no client', async (t) => {
  const relay = await startRelay(t, file())
  const load = await startLoad(t, relay, hmac(HMAC_SECRET))
  const during = { REALTIME_HMAC_SECRET: NEW_SECRET, REALTIME_HMAC_SECRET_PREVIOUS: HMAC_SECRET }

  relay.running.configure(configOf(file(), during))
  await load.run()
  load.sign = hmac(NEW_SECRET)
  await load.run()
  relay.running.configure(configOf(file(), { REALTIME_HMAC_SECRET: NEW_SECRET }))
  await load.run()

  t.same(load.problems, [])
  t.ok(load.isComplete)
})

t.test('a rotation of client.token.hmac_secret_key with valid_until rejects no client before that time', async (t) => {
  const fromFile = { REALTIME_HMAC_SECRET: '' }
  const relay = await startRelay(t, file({ hmac_secret_key: HMAC_SECRET }), fromFile)
  const load = await startLoad(t, relay, hmac(HMAC_SECRET))
  const validUntil = Math.floor(Date.now() / 1000) + 3600
  const rotating = file({
    hmac_secret_key: NEW_SECRET,
    hmac_previous_secret_key: HMAC_SECRET,
    hmac_previous_secret_key_valid_until: validUntil
  })

  relay.running.configure(configOf(rotating, fromFile))
  await load.run()
  load.sign = hmac(NEW_SECRET)
  await load.run()
  t.same(load.problems, [])
  t.ok(load.isComplete)
})

t.test('a rotation of REALTIME_API_KEY under load rejects no publication', async (t) => {
  const relay = await startRelay(t, file())
  const load = await startLoad(t, relay, hmac(HMAC_SECRET))

  relay.running.configure(configOf(file(), { REALTIME_API_KEY: NEW_KEY, REALTIME_API_KEY_PREVIOUS: API_KEY }))
  await load.run()
  load.key = NEW_KEY
  await load.run()
  relay.running.configure(configOf(file(), { REALTIME_API_KEY: NEW_KEY }))
  await load.run()

  t.same(load.problems, [])
  t.ok(load.isComplete)
})

t.test('a rotation of the keys of a JSON Web Key Set under load rejects no client', async (t) => {
  const jwks: JwksServer = await startJwksServer(t)
  const [previous, next] = [newSigningKey('ES256', 'previous'), newSigningKey('ES256', 'next')]
  jwks.serve(await publicJwk(previous))
  let shiftMs = 0
  const relay = await startRelay(
    t,
    file({ jwks_public_endpoint: jwks.url }),
    {},
    {
      monotonicMs: () => performance.now() + shiftMs
    }
  )
  const load = await startLoad(t, relay, () => signToken(previous))

  jwks.serve(await publicJwk(previous), await publicJwk(next))
  await load.run()
  // The cool-down after the first load has passed.
  shiftMs += 31_000
  load.sign = () => signToken(next)
  await load.run()
  jwks.serve(await publicJwk(next))
  await load.run()

  t.same(load.problems, [])
  t.ok(load.isComplete)
  t.equal(jwks.requests, 2)
})

t.test('a rotation without the previous values is noticed by the clients and the publisher', async (t) => {
  const relay = await startRelay(t, file())
  const load = await startLoad(t, relay, hmac(HMAC_SECRET))
  relay.running.configure(configOf(file(), { REALTIME_HMAC_SECRET: NEW_SECRET, REALTIME_API_KEY: NEW_KEY }))

  const connecting = t.rejects(load.connect())
  await eventually(() => load.problems.includes('disconnected 3500 invalid token'))
  await connecting
  await load.publish(1)
  t.match(load.problems, ['disconnected 3500 invalid token', 'publish 401 '])
})
