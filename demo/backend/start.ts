import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Publisher } from '../../src/shared/publisher.js'
import { buildDemoBackend } from './app.js'
import { Accounts } from './auth/accounts.js'
import { ensureDemoAccounts } from './auth/demo-accounts.js'
import type { DemoConfig } from './config.js'
import { openEmbedded } from './database/embedded.js'
import { openPostgres } from './database/postgres.js'
import { createTables } from './database/schema.js'
import { seededRandom } from './random.js'
import type { World } from './records.js'
import { AmbientDevices } from './simulator/ambient.js'
import { Simulation } from './simulator/simulation.js'
import { Simulator } from './simulator/simulator.js'
import { siteLayout } from './site/layout.js'
import { seedSite } from './site/seed.js'

export const SEED = 2024

export interface DemoParts {
  readonly log: Logger
  readonly publisher: Pick<Publisher, 'publish'>
  readonly world: World
  /** Where an empty embedded database is kept for the next start; null keeps none. */
  readonly keptEmptyDatabase: string | null
  readonly bcryptRounds?: number
}

export interface DemoBackend {
  readonly url: string
  readonly app: FastifyInstance
  readonly simulator: Simulator
  close(): Promise<void>
}

const BCRYPT_ROUNDS = 10

/** Opens the database, fills it where it is empty, listens, and lets people walk. */
export const startDemoBackend = async (config: DemoConfig, parts: DemoParts): Promise<DemoBackend> => {
  const { log, publisher, world, keptEmptyDatabase, bcryptRounds = BCRYPT_ROUNDS } = parts
  const { databaseUrl, tokenSecret, realtime } = config
  const database = databaseUrl === null ? await openEmbedded(keptEmptyDatabase) : openPostgres(databaseUrl)
  const site = siteLayout()
  await createTables(database)
  await seedSite(database, site, { seed: SEED, now: world.now() })
  const accounts = new Accounts(database, world, bcryptRounds)
  await ensureDemoAccounts(database, accounts, world, config.demoPassword)

  const simulation = new Simulation({ site, seed: SEED })
  const ambient = new AmbientDevices(seededRandom(SEED))
  const simulator = new Simulator({ simulation, ambient, database, publisher, now: world.now, log })
  // So that the first page that asks finds people there.
  if (config.simulator) await simulator.tick()

  const app = await buildDemoBackend({
    database,
    world,
    accounts,
    site,
    log,
    secrets: { app: tokenSecret, relay: realtime.hmacSecret },
    relayUrl: realtime.clientUrl,
    trustedProxies: config.trustedProxies
  })
  app.addHook('onClose', async () => {
    await simulator.stop()
    await database.close()
  })
  const url = await app.listen(config.listen)
  if (config.simulator) simulator.start()
  return { url, app, simulator, close: () => app.close() }
}
