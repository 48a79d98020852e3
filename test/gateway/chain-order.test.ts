import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { buildGatewayApp, CHAIN } from '../../src/gateway/app.js'
import { gatewayConfig } from '../../src/gateway/config.js'
import { createLogger } from '../../src/shared/logger.js'
import { API_SECRET } from '../helper/gateway.js'

const folder = await mkdtemp(join(tmpdir(), 'gatehouse-chain-'))
t.teardown(() => rm(folder, { recursive: true, force: true }))

const config = gatewayConfig({
  NODE_ENV: 'production',
  BACKEND_URL: 'http://127.0.0.1:9',
  API_SECRET,
  AUDIT_LOG_FILE: join(folder, 'audit.jsonl')
})

const start = async (chain: typeof CHAIN): Promise<void> => {
  const { app } = await buildGatewayApp(config, { log: createLogger({ name: 'test', level: 'silent' }), chain })
  await app.ready()
  await app.close()
}

t.test('the gateway starts with the steps of the chain in their order', async (t) => {
  await t.resolves(start(CHAIN))
})

for (const [index, first] of CHAIN.slice(0, -1).entries()) {
  t.test(`the gateway does not start with steps ${index + 1} and ${index + 2} of the chain swapped`, async (t) => {
    const second = CHAIN[index + 1] ?? first
    const swapped = CHAIN.with(index, second).with(index + 1, first)

    await t.rejects(start(swapped), { code: 'FST_ERR_PLUGIN_DEPENDENCY_NOT_REGISTERED' })
  })
}

for (const index of CHAIN.keys()) {
  if (index === CHAIN.length - 1) continue
  t.test(`the gateway does not start without step ${index + 1} of the chain`, async (t) => {
    await t.rejects(start(CHAIN.toSpliced(index, 1)), { code: 'FST_ERR_PLUGIN_DEPENDENCY_NOT_REGISTERED' })
  })
}
