import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { monotonicMs } from './monotonic.js'

const GRACE_MS = 10_000
const CLOSE_CONNECTIONS_MS = 2_000
/** One Ctrl-C on `npm run …` arrives twice: from the terminal, which signals the process group, and from npm. */
const SAME_SIGNAL_MS = 2_000

export interface Closable {
  /** Fails the health checks and ends each keep-alive connection with its next response. Requests are still served. */
  announceShutdown?: () => void
  /** Accepts no new work, and resolves when all pending work is complete and flushed. */
  close: () => Promise<void>
  /** Closes all connections, so that `close` can resolve. */
  closeConnections: () => void
  /** Synchronous cleanup before an immediate exit. */
  abandon?: () => void
}

export interface ShutdownTimes {
  /** Between the announcement and `close`: the time in which load balancers notice that the health check fails. */
  readonly delayMs?: number
  /** The grace period of `close`. */
  readonly graceMs?: () => number
}

/**
 * Turns SIGTERM and SIGINT into one `close()` after the delay: the program completes pending work within the grace period
 * and exits with 0. A second signal within two seconds is the same signal; a later one ends the process at once.
 * An uncaught error closes the program without a delay, because its state is unknown, and it exits with 1. The returned
 * function closes the program without a signal and without a delay.
 */
export const closeOnSignal = (
  program: Closable,
  log: Logger,
  { delayMs = 0, graceMs: grace = () => GRACE_MS }: ShutdownTimes = {}
): (() => void) => {
  let closingSince: number | null = null
  let exitCode = 0
  const skipDelay = new AbortController()

  const announceAndShutDown = async (): Promise<void> => {
    closingSince = monotonicMs()
    program.announceShutdown?.()
    // An error in the meantime ends the delay.
    await delay(delayMs, undefined, { signal: skipDelay.signal }).catch(() => undefined)
    await shutDown()
  }

  const shutDown = async (): Promise<void> => {
    closingSince ??= monotonicMs()
    const graceMs = grace()
    setTimeout(() => {
      log.warn({ graceMs }, 'shutdown deadline exceeded, closing connections')
      program.closeConnections()
      setTimeout(() => process.exit(exitCode), CLOSE_CONNECTIONS_MS)
    }, graceMs)
    try {
      await program.close()
      log.info('stopped')
    } catch (error) {
      log.error({ err: error }, 'closing failed')
      exitCode = 1
    }
    await flushed(log)
    process.exit(exitCode)
  }

  const closeNow = (): void => {
    skipDelay.abort()
    if (closingSince === null) void shutDown()
  }

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (closingSince !== null) {
        if (monotonicMs() - closingSince < SAME_SIGNAL_MS) return
        log.info({ signal }, 'stopping at once')
        program.abandon?.()
        process.exit(1)
      }
      log.info({ signal, delayMs }, 'stopping')
      void (delayMs > 0 ? announceAndShutDown() : shutDown())
    })
  }
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      log.fatal({ err: error }, event)
      exitCode = 1
      // While it closes, other requests are still completed.
      closeNow()
    })
  }
  return closeNow
}

/** Waits at most one second for a blocked log destination. */
const flushed = (log: Logger): Promise<void> => new Promise((resolve) => log.flush(() => resolve()))
