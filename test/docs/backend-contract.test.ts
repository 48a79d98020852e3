import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { pythonProgram } from '../all/sdk/python.js'
import { urlOf } from '../helper/address.js'
import { startChild } from '../helper/child.js'
import { environment } from '../helper/environment.js'
import { event, officialClient, startRelay } from '../helper/relay.js'
import { API_KEY, HMAC_SECRET } from '../helper/relay-rules.js'

const page = readFileSync(join(ROOT, 'docs/reference/backend-contract.md'), 'utf8')

const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(([, text = '']) => text)

t.test('the Python code of the backend contract signs a token and publishes', async (t) => {
  const relay = await startRelay(t)
  const [code = ''] = blocks('python')
  const run = async (main: string, publishUrl = `${relay.url}/api`): Promise<string> => {
    const python = await startChild(t, pythonProgram(), ['-c', `${code}\n${main}`], {
      PATH: environment.path,
      REALTIME_HMAC_SECRET: HMAC_SECRET,
      REALTIME_API_KEY: API_KEY,
      REALTIME_PUBLISH_URL: publishUrl
    })
    t.match(await python.exited, { code: 0 }, python.stderr)
    return python.stdout.trim()
  }

  const token = await run('print(relay_token("42"))')
  const client = officialClient(t, relay, 'websocket', { getToken: async () => token })
  const subscription = client.newSubscription('floor:7')
  const publication = event(subscription, 'publication')
  const subscribed = event(subscription, 'subscribed')
  subscription.subscribe()
  client.connect()
  await subscribed
  t.equal(await run('print(publish("floor:7", {"n": 1}))'), 'None')
  t.match(await publication, { data: { n: 1 } })
  t.match(await run('print(publish("unknown:7", {}))'), 'HTTP Error 404')
  t.match(await run('print(publish("floor:7", {}))', 'http://127.0.0.1:1/api'), 'refused')

  // A server that fails once and then accepts.
  const keys: unknown[] = []
  const flaky = createServer(async (request, response) => {
    keys.push(JSON.parse(await text(request)).idempotency_key)
    response.writeHead(keys.length === 1 ? 503 : 200).end('{}')
  })
  await once(flaky.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => flaky.close())
  t.equal(await run('print(publish("floor:7", {}))', urlOf(flaky)), 'None')
  t.equal(keys.length, 2)
  t.match(keys[0], /^[0-9a-f-]{36}$/)
  t.equal(keys[0], keys[1], 'the repeated request has the same key')
})

t.test('the JSON of the backend contract is valid', async (t) => {
  const examples = blocks('json')
  t.ok(examples.length >= 2)
  for (const example of examples) t.match(JSON.parse(example), { success: true, data: { expiresIn: 3600 } })
})
