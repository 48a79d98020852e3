import t, { type Test } from 'tap'
import { send } from '../../helper/http.js'
import { connectedClient, type RawClient } from '../../helper/raw-client.js'
import { startRedis } from '../../helper/redis.js'
import { API_KEY } from '../../helper/relay-rules.js'
import { freeze, type RelayOfWorkers, startWorkers } from '../../helper/relay-workers.js'

const FILE = { channel: { namespaces: [{ name: 'chat', allow_subscribe_for_client: true }] } }

/** Several calls at once, because the suspended worker may have the connection of one. */
const call = async ({ url }: RelayOfWorkers, method: string, request: object): Promise<Record<string, unknown>> => {
  const message = { method: 'POST', body: JSON.stringify(request), headers: { 'x-api-key': API_KEY } }
  const calls = [1, 2, 3].map(() => send(url, `/api/${method}`, message))
  return JSON.parse((await Promise.any(calls)).body)
}

/** Two clients at each of two workers, which take turns. */
const twoAtEach = async (t: Test, { url }: RelayOfWorkers, user: string): Promise<readonly RawClient[]> => {
  const clients: RawClient[] = []
  for (let n = 0; n < 4; n++) clients.push(await connectedClient(t, url, user))
  return clients
}

for (const engine of ['memory', 'redis']) {
  t.test(`a suspended worker leaves a command unconfirmed and applies it when it continues (${engine})`, async (t) => {
    const env = engine === 'redis' ? { RELAY_ENGINE: 'redis', REDIS_URL: (await startRedis(t)).url } : {}
    const relay = await startWorkers(t, 2, FILE, env)
    const banned = await twoAtEach(t, relay, 'banned')
    const [hung] = relay.workers()
    const resume = freeze(t, hung)
    t.match(await call(relay, 'disconnect', { user: 'banned' }), { error: { code: 100 } })
    resume()

    for (const { closed } of banned) t.equal(await closed, '3503 force disconnect')
  })
}
