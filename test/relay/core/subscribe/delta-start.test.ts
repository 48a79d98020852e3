import t from 'tap'
import { applyDelta } from '../../../helper/fossil.js'
import { coreRelay, type FakeClient, type Message, withNamespace } from '../../../helper/relay-core.js'

const OPTIONS = {
  allow_subscribe_for_client: true,
  history_size: 10,
  history_ttl: '60s',
  force_recovery: true,
  allowed_delta_types: ['fossil'],
  delta_publish: true
}

const text = (number: number): string => `a long text that the next publication has in common with this one: ${number}`

/** A relay that does not push until `goLive` is called, as if the clients were still reading their replies. */
const heldRelay = () => {
  const held: (() => void)[] = []
  const relay = coreRelay(withNamespace(OPTIONS), { delayPushAfterReply: (task) => void held.push(task) })
  const goLive = (): void => {
    for (const task of held.splice(0)) task()
  }
  const publish = (...numbers: readonly number[]): void => {
    for (const number of numbers) relay.publish('chat:1', text(number), { delta: true })
  }
  const subscribed = async (user: string, more: Message = {}): Promise<FakeClient> => {
    const client = await relay.connected(user)
    await client.send({ id: 2, subscribe: { channel: 'chat:1', delta: 'fossil', ...more } })
    return client
  }
  return { publish, goLive, subscribed }
}

/** What the client receives since the last call: whether it was a delta, and the data after all deltas were applied. */
const received = (client: FakeClient, base = ''): { readonly deltas: boolean[]; readonly last: string } => {
  let last = base
  const deltas: boolean[] = []
  for (const { push } of client.received()) {
    const { data = '', delta = false } = (push?.pub ?? {}) as { readonly data?: string; readonly delta?: boolean }
    last = delta ? applyDelta(Buffer.from(last), data).toString() : data
    deltas.push(delta)
  }
  return { deltas, last }
}

t.test('publications right after a subscribe reply are deltas, except the first one', async (t) => {
  const { publish, goLive, subscribed } = heldRelay()
  const client = await subscribed('1')
  publish(1, 2, 3)
  goLive()
  const first = received(client)
  t.same(first, { deltas: [false, true, true], last: JSON.stringify(text(3)) })
  publish(4)
  t.same(received(client, first.last), { deltas: [true], last: JSON.stringify(text(4)) })
})

t.test('the first publication after a recovery is a delta to the last recovered one', async (t) => {
  const { publish, goLive, subscribed } = heldRelay()
  publish(1, 2)
  const recover = { recover: true, epoch: 'epoch1', offset: 1 }
  const [early, late] = [await subscribed('1', recover), await subscribed('2', recover)]
  goLive()
  publish(3)
  t.same(received(early, JSON.stringify(text(2))), { deltas: [true], last: JSON.stringify(text(3)) })
  t.same(received(late, JSON.stringify(text(2))), { deltas: [true], last: JSON.stringify(text(3)) })
})

t.test('publications while a recovered client reads its reply are deltas', async (t) => {
  const { publish, goLive, subscribed } = heldRelay()
  publish(1, 2)
  const client = await subscribed('1', { recover: true, epoch: 'epoch1', offset: 1 })
  publish(3, 4)
  goLive()
  t.same(received(client, JSON.stringify(text(2))), { deltas: [true, true], last: JSON.stringify(text(4)) })
})

t.test('clients that subscribe at different times all can apply their deltas', async (t) => {
  const { publish, goLive, subscribed } = heldRelay()
  const first = await subscribed('1')
  publish(1)
  goLive()
  const second = await subscribed('2')
  publish(2)
  goLive()
  publish(3)
  t.same(received(first), { deltas: [false, true, true], last: JSON.stringify(text(3)) })
  t.same(received(second), { deltas: [false, true], last: JSON.stringify(text(3)) })
})

t.test('a client that has received nothing gets its first publication in full', async (t) => {
  const { publish, goLive, subscribed } = heldRelay()
  const first = await subscribed('1')
  goLive()
  publish(1)
  const second = await subscribed('2')
  goLive()
  publish(2, 3)
  t.same(received(first).deltas, [false, true, true])
  t.same(received(second), { deltas: [false, true], last: JSON.stringify(text(3)) })
})

t.test('the first publication after a recovery of nothing is sent in full', async (t) => {
  const { publish, goLive, subscribed } = heldRelay()
  publish(1)
  const client = await subscribed('1', { recover: true, epoch: 'epoch1', offset: 1 })
  goLive()
  publish(2, 3)
  t.same(received(client), { deltas: [false, true], last: JSON.stringify(text(3)) })
})

t.test('deltas start at the recovered publication also after a time without subscribers to deltas', async (t) => {
  const { publish, goLive, subscribed } = heldRelay()
  await subscribed('1', { delta: '' })
  const earlier = await subscribed('2')
  goLive()
  publish(1, 2)
  await earlier.send({ id: 3, unsubscribe: { channel: 'chat:1' } })
  publish(3)
  const client = await subscribed('3', { recover: true, epoch: 'epoch1', offset: 2 })
  goLive()
  publish(4)

  t.same(received(client, JSON.stringify(text(3))), { deltas: [true], last: JSON.stringify(text(4)) })
})
