import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { SettingsError } from '../../src/shared/env.js'
import { errorCode } from '../../src/shared/error-code.js'
import { messageOf } from '../../src/shared/error-message.js'
import { createLogger } from '../../src/shared/logger.js'
import { createPublisher } from '../../src/shared/publisher.js'
import { closeOnSignal } from '../../src/shared/shutdown.js'
import { type DemoConfig, demoConfig } from './config.js'
import { startDemoBackend } from './start.js'

/** Longer than the default: a statement of the embedded database blocks the event loop, on a busy machine for seconds. */
const PUBLISH_TIMEOUT_MS = 10_000

// In node_modules next to PGlite, so that a new installation discards it.
const EMPTY_DATABASE_FILE = fileURLToPath(
  new URL('../../../.cache/empty-database.tar', import.meta.resolve('@electric-sql/pglite'))
)

const start = async (config: DemoConfig): Promise<void> => {
  const log = createLogger({ name: 'backend', level: config.logLevel })
  const publisher = createPublisher({ ...config.publish, log, timeoutMs: PUBLISH_TIMEOUT_MS })
  const world = { now: () => new Date(), newId: randomUUID }
  const backend = await startDemoBackend(config, { ...world, log, publisher, emptyDatabaseFile: EMPTY_DATABASE_FILE })
  const close = async (): Promise<void> => {
    await backend.close()
    await publisher.close()
  }
  closeOnSignal({ close, closeConnections: () => backend.app.server.closeAllConnections() }, log)
  log.info(`listening at ${backend.url}`)
}

/** Prints one line per error, without a stack trace, and exits. */
const exitWithErrors = (lines: readonly string[]): never => {
  process.stderr.write(lines.map((line) => `backend: ${line}\n`).join(''))
  process.exit(1)
}

try {
  await start(demoConfig(process.env))
} catch (error) {
  if (error instanceof SettingsError) exitWithErrors(error.errors)
  const message = messageOf(error)
  exitWithErrors([
    errorCode(error) === 'EADDRINUSE' ? `DEMO_BACKEND_PORT must be free (${message})` : `cannot start: ${message}`
  ])
}
