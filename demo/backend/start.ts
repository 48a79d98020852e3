import type { Logger } from 'pino'
import type { Publisher } from '../../src/shared/publisher.js'
import { buildDemoBackend } from './app.js'
import { ensureDemoAccounts } from './auth/accounts.js'
import { createTokens } from './auth/tokens.js'
import type { DemoConfig } from './config.js'
import { openEmbedded, openPostgres } from './database/open.js'
import { tablesSql } from './database/schema.js'
import { checkRollCall } from './emergencies/roll-call.js'
import { PositionHistory } from './positions/history.js'
import { repeated } from './repeated.js'
import { alertCheck } from './routes/alerts.js'
import { Simulator, TICK_MS } from './simulator/simulator.js'
import { seedSite } from './site/seed.js'
import type { World } from './world.js'

const SEED = 2024
const CHECK_EVERY_MS = 2000

export interface DemoParts extends Omit<World, 'database' | 'bcryptRounds'> {
  readonly log: Logger
  readonly publisher: Pick<Publisher, 'publish'>
  /** Cache file of an empty embedded database, which makes the next start faster; null for none. */
  readonly emptyDatabaseFile: string | null
}

export type DemoBackend = Awaited<ReturnType<typeof startDemoBackend>>

/** Opens the database, seeds it if it is empty, and starts the server and the simulator. */
export const startDemoBackend = async (config: DemoConfig, parts: DemoParts) => {
  const { log, publisher, now, newId, emptyDatabaseFile } = parts
  const { databaseUrl, tokenSecret, relay, bcryptRounds } = config
  const tables = tablesSql()
  const database = await (databaseUrl === null
    ? openEmbedded(emptyDatabaseFile, tables)
    : openPostgres(databaseUrl, tables))
  const world = { database, now, newId, bcryptRounds }
  await database.transaction(async (statements) => {
    const inTransaction = { ...world, database: statements }
    await seedSite(inTransaction, SEED)
    await ensureDemoAccounts(inTransaction, config.demoPassword)
  })

  const history = new PositionHistory()
  const simulator = new Simulator({ seed: SEED, database, publisher, history, now })
  if (config.simulator) {
    await simulator.backfill()
    // Positions exist before the first request.
    await simulator.tick()
  }
  const failed = (message: string) => (error: unknown) => log.error({ err: error }, message)
  const alerts = repeated(alertCheck(database, publisher, now), CHECK_EVERY_MS, failed('alert check failed'))
  const rollCall = repeated(() => checkRollCall({ database, now }), CHECK_EVERY_MS, failed('roll call failed'))
  const steps = repeated(() => simulator.tick(), TICK_MS, failed('simulation step failed'))
  await alerts.run()

  const tokens = createTokens(tokenSecret, relay.secret, now)
  const { exchangeSecret, eventsSecret, publish } = config
  const services = { tokens, publisher, publish, history }
  const secrets = { exchangeSecret, eventsSecret }
  const backend = { ...world, ...services, ...secrets, relayUrl: relay.clientUrl }
  const app = await buildDemoBackend(backend, log, config.trustedProxies)
  app.addHook('onClose', async () => {
    for (const task of [alerts, rollCall, steps]) await task.stop()
    await database.close()
  })
  const url = await app.listen(config.listen)
  for (const task of config.simulator ? [alerts, rollCall, steps] : [alerts, rollCall]) task.start()
  return { url, app, simulator, alerts, rollCall, close: () => app.close() }
}
