import t from 'tap'
import { BoundedMap } from '../../src/shared/bounded-map.js'

const filled = (minEntries: number, count: number): BoundedMap<number, { at: number }> => {
  const map = new BoundedMap<number, { at: number }>(minEntries)
  for (let at = 0; at < count; at++) map.set(at, { at })
  return map
}

t.test('a bounded map keeps the newest entries, and less than twice as many as it must', async (t) => {
  for (let count = 0; count < 50; count++) {
    const map = filled(10, count)
    t.ok(map.size < 20, `${map.size} of ${count}`)
    t.same(
      [...map.keys()].sort((left, right) => left - right),
      Array.from({ length: map.size }, (_, index) => count - map.size + index)
    )
    for (let at = Math.max(0, count - 10); at < count; at++) t.same(map.get(at), { at })
  }
})

t.test('an entry of a bounded map that is set again becomes the newest', async (t) => {
  const map = filled(10, 15)
  map.set(0, { at: 15 })
  for (let at = 16; at < 25; at++) map.set(at, { at })

  t.same(map.get(0), { at: 15 })
  t.equal([...map.keys()].filter((key) => key === 0).length, 1)
  t.notOk(map.has(1))
})

t.test('a deleted entry of a bounded map is gone', async (t) => {
  const map = filled(10, 15)
  for (const key of [3, 14]) map.delete(key)

  for (const key of [3, 14]) t.match([map.has(key), map.get(key)], [false, undefined])
  t.equal(map.size, 13)
})

t.test('a key occurs once in an iteration during which entries are set', async (t) => {
  const map = filled(10, 15)
  const keys: number[] = []
  for (const key of map.keys()) {
    keys.push(key)
    for (let at = 5; at < 15; at++) map.set(at, { at })
  }

  t.equal(new Set(keys).size, keys.length)
})

t.test('a bounded map drops expired entries, and none that is not expired', async (t) => {
  const map = filled(10, 5)
  map.expire(({ at }) => at < 5)
  map.set(5, { at: 5 })
  map.expire(({ at }) => at < 4)
  for (let at = 0; at < 6; at++) t.ok(map.has(at), `${at}`)
  map.expire(({ at }) => at < 5)
  t.same([...map.keys()], [5])
  map.expire(({ at }) => at < 6)

  t.equal(map.size, 0)
})
