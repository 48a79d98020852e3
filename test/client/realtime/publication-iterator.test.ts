import t from 'tap'
import { PublicationIterator } from '../../../src/client/realtime/publication-iterator.js'
import { RelayError } from '../../../src/client/realtime/relay-error.js'

t.test('an iterator of publications', async (t) => {
  t.test('an iterator delivers waiting and later values in order, then ends', async (t) => {
    const iterator = new PublicationIterator<number>(() => undefined)
    iterator.push(1)
    iterator.push(2)
    t.same(await iterator.next(), { value: 1, done: false })
    t.same(await iterator.next(), { value: 2, done: false })
    const both = Promise.all([iterator.next(), iterator.next()])
    iterator.push(3)
    iterator.finish(null)
    iterator.push(4)
    t.same(await both, [
      { value: 3, done: false },
      { value: undefined, done: true }
    ])
    t.same(await iterator.next(), { value: undefined, done: true })
  })

  t.test('an iterator delivers the waiting values before an error, which it throws once', async (t) => {
    const iterator = new PublicationIterator<number>(() => undefined)
    iterator.push(1)
    iterator.finish(new RelayError({ code: 103, message: 'permission denied' }))
    t.same(await iterator.next(), { value: 1, done: false })
    await t.rejects(iterator.next(), { code: 103 })
    t.same(await iterator.next(), { value: undefined, done: true })
  })

  t.test('a slow consumer receives 1,000 values and then an error, and the next values are dropped', async (t) => {
    const iterator = new PublicationIterator<number>(() => undefined)
    for (let value = 0; value < 1500; value += 1) iterator.push(value)
    const values: unknown[] = []
    for (let count = 0; count < 1000; count += 1) values.push((await iterator.next()).value)
    t.same(values, [...values.keys()])
    await t.rejects(iterator.next(), { name: 'RelayError', code: 92, message: /too slow/ })
    t.same(await iterator.next(), { value: undefined, done: true })
  })

  t.test('an iterator whose loop is left ends and reports it', async (t) => {
    let left = 0
    const iterator = new PublicationIterator<number>(() => {
      left += 1
    })
    for (const value of [1, 2, 3]) iterator.push(value)
    for await (const value of iterator) if (value === 2) break
    t.equal(left, 1)
    t.same(await iterator.next(), { value: undefined, done: true })
  })
})
