import t from 'tap'
import type { Publication } from '../../../src/relay/core/publication.js'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { ChannelStream, IdempotencyCache } from '../../../src/relay/engine/memory-stream.js'

const publicationAt = (offset: number): Publication => ({ ...PLAIN_PUBLICATION, data: '1', offset, time: 0 })
const offsets = (publications: readonly Publication[]): readonly number[] => publications.map(({ offset }) => offset)
const optionsOf = (historySize: number) => ({ historySize, historyTtlMs: 100, historyMetaTtlMs: 1_000_000 })

for (const size of [1, 3, 10, 100]) {
  t.test(`a stream of at most ${size} publications has the same as a plain list after every change`, async (t) => {
    const stream = new ChannelStream('e')
    let expected: { readonly offset: number; readonly expiresAt: number }[] = []
    const differences: unknown[] = []
    for (let step = 1; step <= 500; step++) {
      // Some publications expire one by one, some together, and some are pushed out.
      const nowMs = step * (step % 50 === 0 ? 3 : 2)
      stream.append(publicationAt(step), optionsOf(size), nowMs)
      expected = [...expected, { offset: step, expiresAt: nowMs + 100 }].slice(-size)
      const first = expected.findIndex(({ expiresAt }) => expiresAt > nowMs + 1)
      expected = expected.slice(first)
      const all = expected.map(({ offset }) => offset)
      const since = { epoch: 'e', offset: step - (step % 7) }
      const read = (range: { readonly limit: number; readonly reverse: boolean }, from: typeof since | null = null) =>
        offsets(stream.read({ since: from, ...range }, nowMs + 1)).join()
      const pairs = [
        [read({ limit: -1, reverse: false }), all],
        [read({ limit: 2, reverse: false }), all.slice(0, 2)],
        [read({ limit: -1, reverse: true }), all.toReversed()],
        [read({ limit: 2, reverse: true }), all.toReversed().slice(0, 2)],
        [read({ limit: 3, reverse: false }, since), all.filter((offset) => offset > since.offset).slice(0, 3)],
        [
          read({ limit: 3, reverse: true }, since),
          all
            .filter((offset) => offset < since.offset)
            .toReversed()
            .slice(0, 3)
        ],
        [String(stream.oldestOffset), [all[0]]]
      ] as const
      for (const [actual, wanted] of pairs) if (actual !== wanted.join()) differences.push([step, actual, wanted])
    }
    t.same(differences.slice(0, 3), [])
  })
}

// If every removal moved the others, this would take hours.
t.test('half of the largest stream expires at once, and it is appended to when it is full', async (t) => {
  const size = 1_000_000
  const stream = new ChannelStream('e')
  const options = optionsOf(size)
  const publication = publicationAt(1)
  for (let index = 0; index < 2 * size; index++) stream.append({ ...publication, offset: index + 1 }, options, 0)
  for (let index = 0; index < size / 2; index++)
    stream.append({ ...publication, offset: 2 * size + index + 1 }, options, 50)
  t.equal(stream.oldestOffset, 1.5 * size + 1)
  stream.expire(100)
  t.equal(stream.oldestOffset, 2 * size + 1)
})

t.test('the memory engine remembers the last 100,000 idempotency keys, for five minutes', async (t) => {
  const cache = new IdempotencyCache()
  const minuteMs = 60_000
  for (let count = 0; count < 250_000; count++) cache.set('floor:7', `key ${count}`, { epoch: 'e', offset: count }, 0)

  t.same(cache.get('floor:7', 'key 249999', minuteMs), { epoch: 'e', offset: 249_999 })
  t.same(cache.get('floor:7', 'key 150000', 4 * minuteMs), { epoch: 'e', offset: 150_000 })
  t.equal(cache.get('floor:7', 'key 0', minuteMs), undefined)
  t.equal(cache.get('floor:7', 'key 249999', 5 * minuteMs), undefined)
  t.equal(cache.get('floor:8', 'key 249999', minuteMs), undefined, 'a key belongs to its channel')
})
