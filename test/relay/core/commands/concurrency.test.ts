import t from 'tap'
import type { Traffic } from '../../../../src/relay/core/core-metrics.js'
import type { RelayDependencies } from '../../../../src/relay/core/session/context.js'
import { MemoryPresence } from '../../../../src/relay/engine/memory-presence.js'
import { monotonicMs } from '../../../../src/shared/monotonic.js'
import { NO_METRICS } from '../../../helper/no-metrics.js'
import { coreRelay, settled, withNamespace } from '../../../helper/relay-core.js'

const CHAT = { presence: true, allow_presence_for_client: true, allow_subscribe_for_client: true }

/** Presence whose replies wait until the test releases them. */
class HeldPresence extends MemoryPresence {
  /** Channels whose presence is being read, in the order of the reads. */
  readonly reading: string[] = []
  readonly #releases = new Map<string, () => void>()

  override async count(channel: string): Promise<{ clients: number; users: number }> {
    await this.#hold(channel)
    return super.count(channel)
  }

  override async read(channel: string): Promise<ReadonlyMap<string, string>> {
    await this.#hold(channel)
    return super.read(channel)
  }

  #hold(channel: string): Promise<void> {
    this.reading.push(channel)
    return new Promise((resolve) => this.#releases.set(channel, resolve))
  }

  async release(channel: string): Promise<void> {
    this.reading.splice(this.reading.indexOf(channel), 1)
    this.#releases.get(channel)?.()
    await settled()
  }
}

/** A connected client of a relay with this `client.concurrency`. */
const start = async (concurrency: number, parts: Partial<RelayDependencies> = {}) => {
  const presence = new HeldPresence({ nowMs: Date.now, monotonicMs })
  const file = withNamespace(CHAT, { concurrency })
  const relay = coreRelay(file, { presence, ...parts })
  const client = await relay.connected('42')
  return { ...relay, presence, client }
}

const stats = (id: number, channel: string) => ({ id, presence_stats: { channel } })

const ids = (messages: readonly { readonly id?: unknown }[]): unknown[] => messages.map(({ id }) => id)

t.test('client.concurrency', async (t) => {
  for (const concurrency of [0, 1]) {
    t.test(`commands run one after the other with ${concurrency}`, async (t) => {
      const { client, presence } = await start(concurrency)
      t.same(await client.send(stats(2, 'chat:a'), stats(3, 'chat:b')), [])
      t.same(presence.reading, ['chat:a'])
      await presence.release('chat:a')
      t.same(ids(client.received()), [2])
      t.same(presence.reading, ['chat:b'])
      await presence.release('chat:b')

      t.same(ids(client.received()), [3])
    })
  }

  t.test(
    'as many commands run at the same time as the option allows, and replies are sent as they are ready',
    async (t) => {
      const { client, presence } = await start(2)
      await client.send(stats(2, 'chat:a'), stats(3, 'chat:b'), stats(4, 'chat:c'))
      await client.send(stats(5, 'chat:d'))
      t.same(presence.reading, ['chat:a', 'chat:b'])
      await presence.release('chat:b')
      t.same(ids(client.received()), [3])
      t.same(presence.reading, ['chat:a', 'chat:c'])
      await presence.release('chat:a')
      await presence.release('chat:c')
      t.same(ids(client.received()), [2, 4])
      await presence.release('chat:d')

      t.same(ids(client.received()), [5])
    }
  )

  t.test('commands of later frames run at the same time as those of earlier ones', async (t) => {
    const { client, presence } = await start(2)
    await client.send(stats(2, 'chat:a'))
    await client.send(stats(3, 'chat:b'))

    t.same(presence.reading, ['chat:a', 'chat:b'])
  })

  t.test('commands for the same channel run one after the other', async (t) => {
    const { client, presence } = await start(8)
    await client.send(stats(2, 'chat:a'), stats(3, 'chat:a'), stats(4, 'chat:b'))
    t.same(presence.reading, ['chat:a'])
    await presence.release('chat:a')

    t.same(presence.reading, ['chat:a', 'chat:b'])
  })

  t.test('an unsubscribe waits for the subscribe before it', async (t) => {
    let verified = (): void => undefined
    const checkSubscriptionToken = () =>
      new Promise<Record<string, unknown>>((resolve) => {
        verified = () => resolve({ sub: '42', channel: 'chat:a', exp: 9_999_999_999 })
      })
    const { client, relay } = await start(8, { checkSubscriptionToken })
    await client.send(
      { id: 2, subscribe: { channel: 'chat:a', token: 'x' } },
      { id: 3, unsubscribe: { channel: 'chat:a' } }
    )
    t.same(client.received(), [])
    verified()
    await settled()

    t.same(ids(client.received()), [2, 3])
    t.equal(relay.stats().subscriptions, 0)
  })

  t.test('the connect command runs alone', async (t) => {
    const relay = coreRelay(withNamespace(CHAT, { concurrency: 8 }))
    const client = relay.client()
    const connect = { id: 1, connect: { token: relay.token({ sub: '42' }) } }

    t.same(ids(await client.send(connect, { id: 2, subscribe: { channel: 'chat:a' } })), [1, 2])
    t.equal(client.closed, null)
  })

  t.test('commands after a rejected connect command are dropped', async (t) => {
    const relay = coreRelay(withNamespace(CHAT, { concurrency: 8 }), { checkToken: async () => 'expired' as const })
    const client = relay.client()
    const connect = { id: 1, connect: { token: 'expired' } }

    const replies = client.send(connect, { id: 2, subscribe: { channel: 'chat:a' } })
    // These arrive while the token is being verified.
    for (const frame of ['{"id":3,"subscribe":{"channel":"chat:b"}}', 'no JSON']) client.client.handleFrame(frame)

    t.match(await replies, [{ id: 1, error: { code: 109 } }])
    t.same(await client.send({ id: 4, subscribe: { channel: 'chat:c' } }), [])
    t.equal(client.closed, null)
  })

  t.test('commands with large replies run one at a time', async (t) => {
    const { client, presence } = await start(8)
    const read = (id: number, channel: string) => ({ id, presence: { channel } })
    await client.send(read(2, 'chat:a'), read(3, 'chat:b'))
    t.same(presence.reading, ['chat:a'])
    await presence.release('chat:a')

    t.same(presence.reading, ['chat:b'])
  })

  t.test('concurrent subscribes do not exceed channel_limit', async (t) => {
    const verified: (() => void)[] = []
    const checkSubscriptionToken = (channel: string) =>
      new Promise<Record<string, unknown>>((resolve) => {
        verified.push(() => resolve({ sub: '42', channel, exp: 9_999_999_999 }))
      })
    const file = withNamespace(CHAT, { concurrency: 8, channel_limit: 1 })
    const relay = coreRelay(file, { checkSubscriptionToken })
    const client = await relay.connected('42')
    await client.send(
      { id: 2, subscribe: { channel: 'chat:a', token: 'chat:a' } },
      { id: 3, subscribe: { channel: 'chat:b', token: 'chat:b' } }
    )
    for (const verify of verified) verify()
    await settled()

    t.match(client.received(), [
      { id: 2, subscribe: {} },
      { id: 3, error: { code: 106 } }
    ])
  })

  t.test('each reply is counted for its own method', async (t) => {
    const messages = new Map<string, { value: number }>()
    const sent = (_transport: string, frameType: string): Traffic => {
      const counter = messages.get(frameType) ?? { value: 0 }
      messages.set(frameType, counter)
      return { messages: counter, bytes: { value: 0 } }
    }
    const { client, presence } = await start(2, { metrics: { ...NO_METRICS, sent } })
    t.same(ids(await client.send(stats(2, 'chat:a'), { id: 3, unsubscribe: { channel: 'chat:b' } })), [3])
    await presence.release('chat:a')

    t.equal(messages.get('presence_stats')?.value, 1)
    t.equal(messages.get('unsubscribe')?.value, 1)
  })
})
