import type { Logger } from 'pino'
import { onHangup } from '../../shared/hangup.js'
import { logOutput } from '../../shared/log-output.js'
import { closeOnSignal } from '../../shared/shutdown.js'
import { withTimeout } from '../../shared/with-timeout.js'
import type { RelayConfig } from '../config/config.js'
import { logReload, type Reload } from '../config/reload.js'
import { ENGINE_SWEEP_MS } from '../core/engine.js'
import { type MemoryEngineDependencies, MemoryUserConnections } from '../engine/memory.js'
import { MemoryUserRates } from '../engine/memory-user-rates.js'
import { channelStateRules } from '../webhooks/channel-state-rules.js'
import { PrimaryMetrics } from './aggregated-metrics.js'
import { PrimaryAdmission } from './connection-limits.js'
import { IpcClosed } from './ipc.js'
import { PrimaryEngine } from './primary-engine.js'
import { type RunningWorker, WorkerProcesses } from './processes.js'
import type { Addresses } from './shared-port.js'
import { PrimaryChannelStates } from './worker-channel-states.js'
import { PrimarySurvey } from './worker-cluster.js'
import { serveUserConnections } from './worker-user-connections.js'
import { serveUserRates } from './worker-user-rates.js'

/** How long the primary waits for its workers. */
export interface PrimaryTimings {
  /** To apply a new configuration. */
  readonly reloadMs: number
  /** For any reply. A worker that is silent for longer is hung and is replaced. */
  readonly hungMs: number
}

const PRIMARY_TIMINGS: PrimaryTimings = { reloadMs: 10_000, hungMs: 30_000 }

export interface PrimaryDependencies extends MemoryEngineDependencies {
  readonly config: RelayConfig
  /** The text of the configuration file. */
  readonly file: string | null
  readonly log: Logger
  /** How long the workers may take to stop. */
  readonly graceMs: (config: RelayConfig) => number
  readonly timings?: PrimaryTimings
  /** Reads the configuration file again. */
  readonly reload: (current: RelayConfig) => { readonly outcome: Reload; readonly file: string | null }
}

/** Runs the process that accepts connections, starts the workers and holds the state that they share. It serves no clients itself. */
export const runPrimary = async (dependencies: PrimaryDependencies): Promise<Addresses> => {
  const { log, graceMs, timings: { reloadMs, hungMs } = PRIMARY_TIMINGS } = dependencies
  let { config, file } = dependencies
  const engine = new PrimaryEngine(dependencies)
  const channelStates = new PrimaryChannelStates(engine.channelStates)
  engine.channelStates.configure(channelStateRules(config))
  const survey = new PrimarySurvey()
  const admission = new PrimaryAdmission(dependencies.monotonicMs)
  const metrics = new PrimaryMetrics()
  const userConnections = new MemoryUserConnections()
  const userRates = new MemoryUserRates(dependencies.monotonicMs)
  const workers = new WorkerProcesses({
    count: config.workers,
    listen: config.listen,
    internalListen: config.internalListen,
    hungMs,
    log,
    output: (lines) => logOutput().write(lines),
    configFile: () => file,
    serve: (ipc, number) => {
      engine.serve(ipc)
      channelStates.serve(ipc)
      survey.serve(ipc)
      admission.serve(ipc)
      metrics.serve(ipc, number)
      serveUserConnections(ipc, userConnections)
      serveUserRates(ipc, userRates)
    }
  })
  setInterval(() => engine.sweep(), ENGINE_SWEEP_MS).unref()

  const reload = async (): Promise<void> => {
    const reloaded = dependencies.reload(config)
    if (!reloaded.outcome.ok) {
      log.error({ errors: reloaded.outcome.errors }, 'config reload rejected')
      return
    }
    config = reloaded.outcome.config
    engine.channelStates.configure(channelStateRules(config))
    file = reloaded.file
    const configured = workers.running.map((worker) => configureWorker(worker, file, { log, reloadMs }))
    const unreached = (await Promise.all(configured)).filter((number) => number !== null)
    logReload(log, reloaded.outcome, unreached)
  }

  closeOnSignal(
    {
      announceShutdown: () => workers.announceShutdown(),
      close: () => workers.stop(),
      closeConnections: () => workers.kill()
    },
    log,
    { delayMs: config.shutdownDelayMs, graceMs: () => graceMs(config) }
  )
  const addresses = await workers.start()
  onHangup(() => {
    reload().catch((error: unknown) => log.error({ err: error }, 'config reload failed'))
  })
  return addresses
}

/** Returns the number of the worker if it has not applied the new configuration in time, else null. */
const configureWorker = async (
  { number, ipc }: RunningWorker,
  file: string | null,
  { log, reloadMs }: Pick<PrimaryDependencies, 'log'> & Pick<PrimaryTimings, 'reloadMs'>
): Promise<number | null> => {
  const applied = ipc.request<'applied'>(
    'configure',
    (out) => out.textOrNull(file),
    () => 'applied'
  )
  const outcome = applied.catch((error) => {
    // A worker that has exited is replaced by one that starts with the new configuration.
    if (error instanceof IpcClosed) return 'exited'
    log.error({ err: error, worker: number }, 'config rejected by worker')
    return 'rejected'
  })
  const inTime = await withTimeout(reloadMs, outcome)
  if (inTime !== null) return inTime === 'rejected' ? number : null
  // The request is still in the IPC connection: a suspended worker applies it when it continues.
  void outcome.then((late) => {
    if (late === 'applied') log.info({ worker: number }, 'config applied late')
  })
  return number
}
