import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { connectedClient, RawClient } from '../../helper/raw-client.js'
import { collect, event, officialClient } from '../../helper/relay.js'
import { atEachWorker, type RelayOfWorkers, startWorkers } from '../../helper/relay-workers.js'
import { firstTwo, required } from '../../helper/required.js'

const WITH_HISTORY = {
  allow_subscribe_for_client: true,
  history_size: 10_000,
  history_ttl: '300s',
  force_recovery: true
}
const FILE = {
  channel: { namespaces: [{ name: 'seq', ...WITH_HISTORY, presence: true }] },
  client: { recovery_max_publication_limit: 10_000 }
}
const PATIENCE_MS = 60_000
/** Between publications, so that the cores are free for the workers that start. */
const PAUSE_MS = 10

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Resolves when all workers serve clients. */
const allRunning = ({ nodes }: RelayOfWorkers, count: number): Promise<unknown> =>
  eventually(() =>
    nodes().then(
      (all) => all.length === count,
      () => false
    )
  )

/** Retries until the publication succeeds, with an idempotency key. */
const publishWithRetries = async (relay: RelayOfWorkers, channel: string, n: number): Promise<void> => {
  for (;;) {
    try {
      await relay.api('publish', { channel, data: { n }, idempotency_key: `${channel} ${n}` })
      return
    } catch {
      // The worker was killed during the request.
    }
  }
}

const LIMIT = 6
const relay = await startWorkers(t, 2, FILE)
const clientCount = async (): Promise<number> =>
  (await relay.nodes()).reduce((count, { num_clients }) => count + num_clients, 0)

/** Ends a worker and waits until it is replaced. */
const replace = async (pid: number, signal: NodeJS.Signals): Promise<void> => {
  process.kill(pid, signal)
  await eventually(() => !isAlive(pid))
  await allRunning(relay, 2)
}

t.test('a worker that is killed', async (t) => {
  const [steady, first] = firstTwo(relay.workers())

  t.test('a killed worker is replaced, and its clients receive every publication once', async (t) => {
    const received = await Promise.all(
      Array.from({ length: 10 }, async (_, index) => {
        const client = officialClient(t, relay, 'websocket')
        const subscription = client.newSubscription(`seq:${index % 2}`)
        const collected = collect(subscription)
        const subscribed = event(subscription, 'subscribed')
        subscription.subscribe()
        client.connect()
        await subscribed
        return collected
      })
    )
    let isPublishing = true
    const publishers = ['seq:0', 'seq:1'].map(async (channel) => {
      let n = 0
      while (isPublishing) {
        await publishWithRetries(relay, channel, ++n)
        await setTimeout(PAUSE_MS)
      }
      return n
    })
    let victim = first
    for (let time = 0; time < 2; time++) {
      const at = received.map(({ publications }) => publications.length)
      await replace(victim, 'SIGKILL')
      victim = required(relay.workers().find((pid) => pid !== steady))
      await Promise.all(received.map(({ until }, index) => until(({ length }) => length > required(at[index]) + 5)))
    }
    isPublishing = false
    const published = await Promise.all(publishers)
    for (const [index, { until, publications }] of received.entries()) {
      const count = required(published[index % 2])
      await until(({ length }) => length >= count)
      t.same(
        publications.map(({ data, offset }) => [data.n, offset]),
        Array.from({ length: count }, (_, index) => [index + 1, index + 1])
      )
    }
  })

  t.test('the delay before a restart doubles', async (t) => {
    const delays = [...relay.program.stdout.matchAll(/"exit":"SIGKILL","delayMs":(\d+)/g)].map(([, ms]) => Number(ms))
    t.same(delays, [100, 200])
  })

  t.test('presence has no entries of a killed worker', async (t) => {
    const clients = await atEachWorker(relay, async () => {
      const client = await connectedClient(t, relay.url)
      await client.request({ id: 2, subscribe: { channel: 'seq:ghosts' } })
      return client
    })
    const count = async (): Promise<unknown> =>
      (await relay.api('presence_stats', { channel: 'seq:ghosts' })).num_clients
    // A worker adds presence after its reply to the client, and another worker may handle the request for the count.
    await eventually(async () => (await count()) === clients.length)
    await replace(steady, 'SIGKILL')
    t.equal(await Promise.race(clients.map(({ closed }) => closed)), '1006')
    const left = clients.filter(({ ws }) => ws.readyState === ws.OPEN)

    t.ok(left.length > 0 && left.length < clients.length)
    await eventually(async () => (await count()) === left.length)
  })

  t.test('a worker that receives SIGTERM closes its clients with 3001 and is replaced', async (t) => {
    const clients = await atEachWorker(relay, () => connectedClient(t, relay.url))
    const [pid] = relay.workers()
    await replace(pid, 'SIGTERM')
    t.equal(await Promise.race(clients.map(({ closed }) => closed)), '3001 shutdown')
  })
})

t.test('a config reload of a relay with workers', async (t) => {
  const rejections = async (channel: string): Promise<number> => {
    const replies = await Promise.all(Array.from({ length: 4 }, () => relay.publish(channel, 1)))
    return replies.filter((reply) => reply === undefined).length
  }

  t.test('an invalid file is rejected once, and the old options stay', async (t) => {
    relay.configure('{')
    relay.program.signal('SIGHUP')
    await relay.program.waitForLine('config reload rejected', PATIENCE_MS)
    t.equal(await rejections('seq:1'), 0)
    t.equal(relay.program.stdout.split('config reload rejected').length, 2)
  })

  t.test('a new worker does not use the invalid file', async (t) => {
    const [pid] = relay.workers()
    await replace(pid, 'SIGKILL')
    t.equal(await rejections('seq:1'), 0)
  })

  t.test('all workers and new workers use the new options', async (t) => {
    relay.configure({ channel: { namespaces: [{ name: 'new' }] }, client: { connections_per_address: LIMIT } })
    relay.program.signal('SIGHUP')
    await relay.program.waitForLine('config reloaded', PATIENCE_MS)
    t.equal(await rejections('new:1'), 0)
    t.equal(await rejections('seq:1'), 4)
    const [pid] = relay.workers()
    await replace(pid, 'SIGKILL')
    t.equal(await rejections('new:1'), 0)
    t.equal(await rejections('seq:1'), 4)
  })

  t.test('the connection limit applies to all workers together', async (t) => {
    await eventually(async () => (await clientCount()) === 0)
    const come = (): Promise<number> =>
      new Promise((resolve) => {
        const { ws } = new RawClient(relay.url)
        t.teardown(() => ws.terminate())
        ws.once('open', () => resolve(101))
        ws.once('unexpected-response', (request, response) => {
          request.destroy()
          resolve(response.statusCode ?? 0)
        })
      })
    const statuses = await Promise.all(Array.from({ length: 2 * LIMIT }, come))
    t.equal(statuses.filter((status) => status === 101).length, LIMIT)
    t.equal(statuses.filter((status) => status === 429).length, LIMIT)

    const [pid] = relay.workers()
    await replace(pid, 'SIGKILL')
    const left = await clientCount()
    const again = await Promise.all(Array.from({ length: LIMIT }, come))
    t.equal(
      again.filter((status) => status === 101).length,
      LIMIT - left,
      'connections of a killed worker do not count'
    )
  })
})

t.test('SIGINT to the relay and to all its workers', async (t) => {
  await eventually(async () => (await clientCount()) === 0)
  const pids = relay.workers()
  const clients = await Promise.all(Array.from({ length: 4 }, () => connectedClient(t, relay.url)))
  // Terminals and some supervisors signal the process group.
  for (const pid of pids) process.kill(pid, 'SIGINT')
  relay.program.signal('SIGINT')

  t.test('all clients are closed with 3001 and the exit code is 0', async (t) => {
    for (const { closed } of clients) t.equal(await closed, '3001 shutdown')
    t.same(await relay.program.exited, { code: 0, signal: null })
    t.same(pids.filter(isAlive), [])
    t.equal(relay.program.stderr, '')
  })
})

t.test('a relay whose primary is killed', async (t) => {
  const relay = await startWorkers(t, 2, FILE)
  const pids = relay.workers()
  const client = await connectedClient(t, relay.url)
  relay.program.signal('SIGKILL')

  t.test('the workers close their clients and exit, and the port is free', async (t) => {
    t.equal(await client.closed, '3001 shutdown')
    await eventually(() => !pids.some(isAlive))
    await t.rejects(send(relay.url, '/health'), { code: 'ECONNREFUSED' })
  })
})
