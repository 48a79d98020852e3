import t from 'tap'
import { Listeners } from '../../src/client/listeners.js'

t.test('listeners', async (t) => {
  t.test('are told in the order in which they came, until they leave', async (t) => {
    const listeners = new Listeners<number>()
    const heard: string[] = []
    const leave = listeners.add((n) => void heard.push(`one ${n}`))
    listeners.add((n) => void heard.push(`two ${n}`))
    listeners.emit(1)
    leave()
    leave()
    listeners.emit(2)

    t.same(heard, ['one 1', 'two 1', 'two 2'])
  })

  t.test('may be the same function twice, each with its own leave', async (t) => {
    const listeners = new Listeners<number>()
    let told = 0
    const listener = (): void => {
      told += 1
    }
    listeners.add(listener)()
    listeners.add(listener)
    listeners.add(listener)
    listeners.emit(1)

    t.equal(told, 2)
  })

  t.test('hear the one event that was told when they come or go within it', async (t) => {
    const listeners = new Listeners<number>()
    const heard: string[] = []
    const leave = listeners.add(() => {
      leave()
      listeners.add(() => void heard.push('late'))
    })
    listeners.add(() => void heard.push('early'))
    listeners.emit(1)

    t.same(heard, ['early'])
  })

  t.test('do not keep each other from hearing, and their faults are reported', async (t) => {
    const listeners = new Listeners<number>()
    const reported: (() => void)[] = []
    const { queueMicrotask: own } = globalThis
    t.teardown(() => {
      globalThis.queueMicrotask = own
    })
    globalThis.queueMicrotask = (report) => void reported.push(report)
    let told = 0
    listeners.add(() => {
      throw new Error('oh')
    })
    listeners.add(() => {
      told += 1
    })
    listeners.emit(1)

    t.equal(told, 1)
    t.equal(reported.length, 1)
    t.throws(() => reported[0]?.(), { message: 'oh' })
  })
})
