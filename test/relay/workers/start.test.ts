import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { freePort } from '../../helper/free-port.js'
import { send } from '../../helper/http.js'
import { connectedClient } from '../../helper/raw-client.js'
import { startWorkers } from '../../helper/relay-workers.js'

const WORKERS = 3
const CLIENTS_PER_WORKER = 20
const RETRY_MS = 5

/** Retries until it succeeds, as clients and load balancers do while a relay is restarted. */
const retried = async <T>(attempt: () => Promise<T>): Promise<T> => {
  for (;;) {
    try {
      return await attempt()
    } catch {
      await setTimeout(RETRY_MS)
    }
  }
}

t.test('clients that wait for a relay to start', async (t) => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const starting = startWorkers(t, WORKERS, {}, { RELAY_HOST: '127.0.0.1', RELAY_PORT: String(port) })
  const healthy = retried(() => send(url, '/health'))
  const clients = Array.from({ length: WORKERS * CLIENTS_PER_WORKER }, () => retried(() => connectedClient(t, url)))
  const { status } = await healthy
  const relay = await starting
  await Promise.all(clients)

  t.test('the first response to a health check is 200', async (t) => {
    t.equal(status, 200)
  })

  t.test('all workers serve some of the clients', async (t) => {
    const counts = (await relay.nodes()).map(({ num_clients }) => num_clients)
    t.equal(counts.length, WORKERS)
    // The kernel distributes connections by a hash where workers share the port.
    t.ok(Math.min(...counts) >= CLIENTS_PER_WORKER / 4, `clients of the workers: ${counts.join(', ')}`)
  })
})
