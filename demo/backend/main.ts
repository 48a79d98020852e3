import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { SettingsError } from '../../src/shared/env.js'
import { createLogger } from '../../src/shared/logger.js'
import { createPublisher } from '../../src/shared/publisher.js'
import { closeOnSignal } from '../../src/shared/shutdown.js'
import { type DemoConfig, demoConfig } from './config.js'
import { startDemoBackend } from './start.js'

// Beside the package that made it, so that a fresh install begins anew.
const KEPT_EMPTY = fileURLToPath(
  new URL('../../../.cache/empty-database.tar', import.meta.resolve('@electric-sql/pglite'))
)

const start = async (config: DemoConfig): Promise<void> => {
  const log = createLogger({ name: 'backend', level: config.logLevel })
  const publisher = createPublisher({ ...config.publish, log })
  const world = { now: () => new Date(), newId: randomUUID }
  const backend = await startDemoBackend(config, { ...world, log, publisher, keptEmptyDatabase: KEPT_EMPTY })
  const close = async (): Promise<void> => {
    await backend.close()
    await publisher.close()
  }
  closeOnSignal({ close, closeConnections: () => backend.app.server.closeAllConnections() }, log)
  log.info(`listening at ${backend.url}`)
}

/** A person reads this: one line per fault, no stack trace. */
const giveUp = (lines: readonly string[]): never => {
  process.stderr.write(lines.map((line) => `backend: ${line}\n`).join(''))
  process.exit(1)
}

try {
  await start(demoConfig(process.env))
} catch (error) {
  if (error instanceof SettingsError) giveUp(error.errors)
  const { code, message } = error as NodeJS.ErrnoException
  giveUp([code === 'EADDRINUSE' ? `DEMO_BACKEND_PORT must be free (${message})` : `cannot start: ${message}`])
}
