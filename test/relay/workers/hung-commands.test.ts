import t from 'tap'
import { send } from '../../helper/http.js'
import { connectedClient } from '../../helper/raw-client.js'
import { startRedis } from '../../helper/redis.js'
import { API_KEY } from '../../helper/relay-rules.js'
import { atEachWorker, freeze, type RelayOfWorkers, startWorkers } from '../../helper/relay-workers.js'

const FILE = { channel: { namespaces: [{ name: 'chat', allow_subscribe_for_client: true }] } }

/** Several calls at once, because the suspended worker may have the connection of one. */
const call = async ({ url }: RelayOfWorkers, method: string, request: object): Promise<Record<string, unknown>> => {
  const message = { method: 'POST', body: JSON.stringify(request), headers: { 'x-api-key': API_KEY } }
  const calls = Array.from({ length: 20 }, () => send(url, `/api/${method}`, message))
  return JSON.parse((await Promise.any(calls)).body)
}

for (const engine of ['memory', 'redis']) {
  t.test(`a suspended worker leaves a command unconfirmed and applies it when it continues (${engine})`, async (t) => {
    const env = engine === 'redis' ? { RELAY_ENGINE: 'redis', REDIS_URL: (await startRedis(t)).url } : {}
    const relay = await startWorkers(t, 2, FILE, env)
    const banned = await atEachWorker(relay, () => connectedClient(t, relay.url, 'banned'))
    const [hung] = relay.workers()
    const resume = freeze(t, hung)
    t.match(await call(relay, 'disconnect', { user: 'banned' }), { error: { code: 100 } })
    resume()

    for (const { closed } of banned) t.equal(await closed, '3503 force disconnect')
  })
}
