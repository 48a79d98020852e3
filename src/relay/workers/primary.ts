import type { Logger } from 'pino'
import { onHangup } from '../../shared/hangup.js'
import { standardOutput } from '../../shared/log-output.js'
import { closeOnSignal } from '../../shared/shutdown.js'
import type { RelayConfig } from '../config.js'
import { logReload, type Reload } from '../config-reload.js'
import type { MemoryParts } from '../engine/memory.js'
import { MemoryUserConnections } from '../engine/memory-user-connections.js'
import { AdmissionDesk } from './admission-desk.js'
import { ChannelOwner } from './channel-owner.js'
import { FleetDesk, within } from './fleet-desk.js'
import { LinkBroken } from './link.js'
import { MetricsDesk } from './metrics-desk.js'
import { serveUserConnections } from './user-connections.js'
import { type Address, type RunningWorker, WorkerProcesses } from './worker-processes.js'

const SWEEP_MS = 10_000

/** How long the primary waits for its workers. */
export interface PrimaryTimes {
  /** For a new config to be applied. */
  readonly reloadMs: number
  /** For an answer of any kind: a worker that is silent for longer is hung, and is replaced. */
  readonly hungMs: number
}

export const PRIMARY_TIMES: PrimaryTimes = { reloadMs: 10_000, hungMs: 30_000 }

export interface ConfigWithFile {
  readonly config: RelayConfig
  /** The text of the file that it was read from. */
  readonly file: string | null
}

export interface PrimaryParts extends MemoryParts, ConfigWithFile {
  readonly log: Logger
  /** How long the workers may take to stop. */
  readonly graceMs: (config: RelayConfig) => number
  readonly times: PrimaryTimes
  /** Reads the file again. */
  readonly reload: (current: RelayConfig) => { readonly outcome: Reload; readonly file: string | null }
}

/** The process that starts the workers and owns what they share. It serves no clients itself. */
export const runPrimary = async (parts: PrimaryParts): Promise<Address> => {
  const { log, graceMs, times } = parts
  let { config, file } = parts
  const owner = new ChannelOwner(parts)
  const fleet = new FleetDesk()
  const admission = new AdmissionDesk(parts.monotonicMs)
  const metrics = new MetricsDesk()
  const userConnections = new MemoryUserConnections()
  const workers = new WorkerProcesses({
    count: config.workers,
    hungMs: times.hungMs,
    log,
    output: (lines) => standardOutput().write(lines),
    file: () => file,
    serve: (link, number) => {
      owner.serve(link)
      fleet.serve(link)
      admission.serve(link)
      metrics.serve(link, number)
      serveUserConnections(link, userConnections)
    }
  })
  setInterval(() => owner.sweep(), SWEEP_MS).unref()

  /** The number of a worker that has not applied the new config in time, else null. */
  const reach = async ({ number, link }: RunningWorker): Promise<number | null> => {
    const applied = link.ask(
      'configure',
      (out) => out.textOrNull(file),
      () => 'applied' as const
    )
    const outcome = applied.catch((error) => {
      // A worker that has ended is replaced by one that starts with the new config.
      if (error instanceof LinkBroken) return 'ended'
      log.error({ err: error, worker: number }, 'config refused by a worker')
      return 'refused'
    })
    const inTime = await within(times.reloadMs, outcome)
    if (inTime !== null) return inTime === 'refused' ? number : null
    // The config stays on the link: the worker applies it when it goes on.
    void outcome.then((late) => {
      if (late === 'applied') log.info({ worker: number }, 'config applied late')
    })
    return number
  }

  const configure = async (): Promise<void> => {
    const reload = parts.reload(config)
    if (!reload.outcome.ok) {
      log.error({ faults: reload.outcome.faults }, 'the new config is refused, the old one stays')
      return
    }
    config = reload.outcome.config
    file = reload.file
    const unreached = (await Promise.all(workers.running.map(reach))).filter((number) => number !== null)
    logReload(log, reload.outcome, unreached)
  }

  closeOnSignal({ close: () => workers.stop(), cutOff: () => workers.kill() }, log, () => graceMs(config))
  const address = await workers.start()
  onHangup(() => void configure())
  return address
}
