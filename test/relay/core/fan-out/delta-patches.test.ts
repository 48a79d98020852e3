import t from 'tap'
import { DeltaPatches } from '../../../../src/relay/core/fan-out/delta.js'
import type { Payload, Publication } from '../../../../src/relay/core/publication.js'
import { coreRelay, withNamespace } from '../../../helper/relay-core.js'

/** A publication that counts reads of its data. Creating a patch reads it once. */
const counted = (offset: number, reads: { count: number }): Publication => ({
  get data() {
    reads.count += 1
    return JSON.stringify({ filler: 'x'.repeat(200), offset })
  },
  offset,
  info: null,
  tags: null,
  time: 0,
  delta: true,
  version: 0
})

t.test('a patch is created once for all clients', async (t) => {
  const patches = new DeltaPatches()
  const reads = { count: 0 }
  const [base, target] = [counted(4, { count: 0 }), counted(5, reads)]
  const first = patches.between('chat:1', 'e', base, target)
  // Another read of the history returns new objects.
  const again = patches.between('chat:1', 'e', { ...base }, counted(5, reads))

  t.ok(first)
  t.equal(again, first)
  t.equal(reads.count, 1)
})

t.test('patches of other channels, other epochs and publications without offset are kept apart', async (t) => {
  const patches = new DeltaPatches()
  const reads = { count: 0 }
  const keys: [channel: string, epoch: string, base: number, target: number][] = [
    ['chat:1', 'e', 4, 5],
    ['chat:2', 'e', 4, 5],
    ['chat:1', 'f', 4, 5],
    ['chat:1', 'e', 3, 5],
    ['chat:1', 'e', 0, 0],
    ['chat:1', 'e', 0, 0]
  ]
  for (const [channel, epoch, base, target] of keys) {
    patches.between(channel, epoch, counted(base, { count: 0 }), counted(target, reads))
  }

  t.equal(reads.count, keys.length)
})

t.test('the patch cache is bounded, and evicts the least recently used channel', async (t) => {
  const patches = new DeltaPatches(10_000)
  const reads = { count: 0 }
  const patchFor = (channel: string, offset: number, counter = { count: 0 }): Payload | null =>
    patches.between(channel, 'e', counted(offset - 1, { count: 0 }), counted(offset, counter))
  for (let n = 0; n < 500; n++) {
    patchFor(`chat:${n}`, 2)
    patchFor('chat:hot', 2, reads)
  }
  t.equal(reads.count, 1)
  for (let offset = 3; offset < 500; offset++) patchFor('chat:hot', offset)
  t.ok(patches.length <= 10_000, `${patches.length} characters`)
  const { length } = patches
  for (let n = 0; n < 500; n++) patches.chain(`chat:${n}`, 'e', [])

  t.ok(patches.length <= Math.max(length, 10_000), 'channels without patches count too')
})

t.test('recovering clients get the patches that other clients received live', async (t) => {
  const { connected, publish, patches } = coreRelay(
    withNamespace({
      allow_subscribe_for_client: true,
      history_size: 10,
      history_ttl: '60s',
      force_recovery: true,
      allowed_delta_types: ['fossil'],
      delta_publish: true
    })
  )
  const live = await connected('1')
  await live.send({ id: 2, subscribe: { channel: 'chat:1', delta: 'fossil' } })
  for (let n = 1; n <= 3; n++) publish('chat:1', { filler: 'x'.repeat(200), n })
  const length = patches.length
  const pushed = live.received().map(({ push }) => push?.pub?.data)
  const [reply] = await (await connected('2')).send({
    id: 2,
    subscribe: { channel: 'chat:1', delta: 'fossil', recover: true, epoch: 'epoch1', offset: 0 }
  })
  const { publications = [] } = reply?.subscribe ?? {}

  t.same(
    publications.map(({ data }) => data),
    pushed
  )
  t.same(
    publications.map(({ delta }) => delta ?? false),
    [false, true, true]
  )
  t.equal(patches.length, length, 'no patch was created again')
})
