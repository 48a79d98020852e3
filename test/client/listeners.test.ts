import t from 'tap'
import { Listeners } from '../../src/client/listeners.js'

t.test('listeners', async (t) => {
  t.test('listeners are called in order until they are removed', async (t) => {
    const listeners = new Listeners<number>()
    const received: string[] = []
    const leave = listeners.add((n) => void received.push(`one ${n}`))
    listeners.add((n) => void received.push(`two ${n}`))
    listeners.emit(1)
    leave()
    leave()
    listeners.emit(2)

    t.same(received, ['one 1', 'two 1', 'two 2'])
  })

  t.test('the same function can be added and removed twice', async (t) => {
    const listeners = new Listeners<number>()
    let calls = 0
    const listener = (): void => {
      calls += 1
    }
    listeners.add(listener)()
    listeners.add(listener)
    listeners.add(listener)
    listeners.emit(1)

    t.equal(calls, 2)
  })

  t.test('adding and removing listeners during an event takes effect with the next one', async (t) => {
    const listeners = new Listeners<number>()
    const received: string[] = []
    const leave = listeners.add(() => {
      leave()
      listeners.add(() => void received.push('late'))
    })
    listeners.add(() => void received.push('early'))
    listeners.emit(1)

    t.same(received, ['early'])
  })

  t.test('an error in a listener is reported and does not affect the others', async (t) => {
    const listeners = new Listeners<number>()
    const reported: (() => void)[] = []
    const { queueMicrotask: own } = globalThis
    t.teardown(() => {
      globalThis.queueMicrotask = own
    })
    globalThis.queueMicrotask = (report) => void reported.push(report)
    let calls = 0
    listeners.add(() => {
      throw new Error('oh')
    })
    listeners.add(() => {
      calls += 1
    })
    listeners.emit(1)

    t.equal(calls, 1)
    t.equal(reported.length, 1)
    t.throws(() => reported[0]?.(), { message: 'oh' })
  })
})
