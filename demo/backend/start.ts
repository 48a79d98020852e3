import type { Logger } from 'pino'
import type { Publisher } from '../../src/shared/publisher.js'
import { AlertMonitor } from './alerts/monitor.js'
import { buildDemoBackend } from './app.js'
import { RecentLookups } from './audit/recent-lookups.js'
import { ensureDemoAccounts } from './auth/accounts.js'
import { createTokens } from './auth/tokens.js'
import type { DemoConfig } from './config.js'
import { openEmbedded, openPostgres } from './database/open.js'
import { createTables } from './database/schema.js'
import { RollCallMonitor } from './emergencies/roll-call-monitor.js'
import { EMBEDDED_POSITION_HOURS, RetentionMonitor } from './history/retention.js'
import { NotificationSender } from './notifications/sender.js'
import { Watchers } from './relay/watchers.js'
import { Simulator } from './simulator/simulator.js'
import { seedSite } from './site/seed.js'
import { recordGuests } from './visits/guests.js'
import type { World } from './world.js'

const SEED = 2024

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
  const database = databaseUrl === null ? await openEmbedded(emptyDatabaseFile) : openPostgres(databaseUrl)
  const world = { database, now, newId, bcryptRounds }
  const maxPositionHours = databaseUrl === null ? EMBEDDED_POSITION_HOURS : null
  await createTables(database)
  await database.transaction(async (statements) => {
    await seedSite({ ...world, database: statements }, SEED)
    await recordGuests({ ...world, database: statements })
  })
  await ensureDemoAccounts(world, config.demoPassword)

  const simulator = new Simulator({ seed: SEED, database, publisher, now, log })
  const past = config.simulator && config.hasHistory ? await simulator.backfill() : null
  const storing = past?.stored.then(
    () => log.info('past positions stored'),
    (error: unknown) => log.error({ err: error }, 'storing past positions failed')
  )
  // Positions exist before the first request.
  if (config.simulator) await simulator.tick()
  const alerts = new AlertMonitor({ database, publisher, now, newId, log })
  await alerts.check()
  const rollCall = new RollCallMonitor(world, log)
  const retention = new RetentionMonitor(world, maxPositionHours, log)
  const notifications = new NotificationSender(world, log)
  await notifications.failInterruptedTests()
  const monitors = [alerts, rollCall, retention, notifications]

  const tokens = createTokens(tokenSecret, relay.secret, now)
  const { exchangeSecret, eventsSecret, publish } = config
  const watchers = new Watchers(publish)
  const services = { tokens, publisher, watchers, notifications, lookups: new RecentLookups() }
  const secrets = { exchangeSecret, eventsSecret }
  const backend = { ...world, ...services, ...secrets, relayUrl: relay.clientUrl, maxPositionHours }
  const app = await buildDemoBackend(backend, log, config.trustedProxies)
  app.addHook('onClose', async () => {
    for (const monitor of monitors) await monitor.stop()
    await simulator.stop()
    await storing
    await database.close()
  })
  const url = await app.listen(config.listen)
  if (config.simulator) simulator.start()
  for (const monitor of monitors) monitor.start()
  return { url, app, simulator, alerts, rollCall, retention, notifications, close: () => app.close() }
}
