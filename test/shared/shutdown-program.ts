import { createLogger } from '../../src/shared/logger.js'
import { closeOnSignal } from '../../src/shared/shutdown.js'

// For shutdown.test.ts. The argument is the delay. SIGUSR2 causes an unhandled rejection, and SIGHUP lets `close` resolve.
const log = createLogger({ name: 'program', level: 'info' })
let finish: () => void = () => undefined
closeOnSignal(
  {
    announceShutdown: () => log.info('announced'),
    close: () =>
      new Promise((resolve) => {
        log.info('closing')
        finish = resolve
      }),
    closeConnections: () => undefined
  },
  log,
  { delayMs: Number(process.argv[2]) }
)
process.on('SIGUSR2', () => void Promise.reject(new Error('a test')))
process.on('SIGHUP', () => finish())
// Signal handlers do not keep a process running.
setInterval(() => undefined, 60_000)
log.info('started')
