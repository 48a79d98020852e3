import t from 'tap'
import { ConnectionRegistry } from '../../../../src/relay/core/session/registry.js'

const LATER = Number.POSITIVE_INFINITY

interface Connection {
  readonly user: string
  registryIndex: number
}

/** Connections 0, 1, 2 …; each is due at the monotonic time of its number. */
const registryOf = (count: number) => {
  const registry = new ConnectionRegistry<Connection>()
  const connections = Array.from({ length: count }, (_, number) => ({ user: String(number), registryIndex: -1 }))
  for (const connection of connections) {
    registry.add(connection)
    registry.setNextCheck(connection, { monotonicMs: Number(connection.user), wallMs: LATER })
  }
  return { registry, connections }
}

const dueAt = (registry: ConnectionRegistry<Connection>, monotonicMs: number, wallMs = 0): number[] => {
  const due: number[] = []
  registry.checkDue({ monotonicMs, wallMs }, ({ user }) => due.push(Number(user)))
  return due.sort((left, right) => left - right)
}

const numbersTo = (end: number): number[] => Array.from({ length: end + 1 }, (_, number) => number)

t.test('exactly the connections whose time has come are checked, with more of them than fit at first', async (t) => {
  const { registry } = registryOf(5000)

  t.same(dueAt(registry, -1), [])
  t.same(dueAt(registry, 3210), numbersTo(3210))
})

t.test('a connection keeps its time when another one is removed', async (t) => {
  const { registry, connections } = registryOf(100)
  for (const connection of connections) if (Number(connection.user) % 3 === 0) registry.remove(connection)

  t.same(
    dueAt(registry, 50),
    numbersTo(50).filter((number) => number % 3 !== 0)
  )
})

t.test('a connection without a time is not checked, also in the slot of an earlier one', async (t) => {
  const { registry, connections } = registryOf(2)
  for (const connection of connections) registry.remove(connection)
  registry.add({ user: '7', registryIndex: -1 })

  t.same(dueAt(registry, Number.MAX_VALUE), [])
})

t.test('a connection is due when one of its two clocks has reached its time', async (t) => {
  const { registry, connections } = registryOf(3)
  for (const connection of connections) registry.setNextCheck(connection, { monotonicMs: LATER, wallMs: 1000 })

  t.same(dueAt(registry, 5, 999), [])
  t.same(dueAt(registry, 5, 1000), [0, 1, 2])
})

t.test('connections that are removed by their check do not prevent the check of others', async (t) => {
  const { registry } = registryOf(100)
  const checked: number[] = []
  registry.checkDue({ monotonicMs: 100, wallMs: 0 }, (connection) => {
    checked.push(Number(connection.user))
    registry.remove(connection)
  })

  t.same(
    checked.sort((left, right) => left - right),
    numbersTo(99)
  )
  t.same(registry.all, [])
})

t.test('the time of a removed connection has no effect', async (t) => {
  const { registry, connections } = registryOf(2)
  const [first] = connections
  if (first === undefined) throw new Error('no connection')
  registry.remove(first)
  registry.setNextCheck(first, { monotonicMs: -1, wallMs: LATER })

  t.same(dueAt(registry, 0), [])
})

t.test('a user is counted as long as one of its connections is open', async (t) => {
  const registry = new ConnectionRegistry<Connection>()
  const connections = ['ada', 'ada', 'bob'].map((user) => ({ user, registryIndex: -1 }))
  for (const connection of connections) {
    registry.add(connection)
    registry.setUser(connection)
  }
  const users = connections.map((connection) => {
    registry.remove(connection)
    return [registry.users, registry.countOfUser('ada'), registry.ofUser('ada').length]
  })

  t.same(users, [
    [2, 1, 1],
    [1, 0, 0],
    [0, 0, 0]
  ])
})
