import type { Logger } from 'pino'
import { onHangup } from '../../shared/hangup.js'
import { closeOnSignal } from '../../shared/shutdown.js'
import type { RelayConfig } from '../config.js'
import type { Reload } from '../config-reload.js'
import type { MemoryParts } from '../engine/memory.js'
import { AdmissionDesk } from './admission-desk.js'
import { ChannelOwner } from './channel-owner.js'
import { FleetDesk, within } from './fleet-desk.js'
import { MetricsDesk } from './metrics-desk.js'
import { type Address, WorkerProcesses } from './worker-processes.js'

const SWEEP_MS = 10_000
/** What a worker may take for a new file. */
const RELOAD_MS = 10_000

export interface ConfigWithFile {
  readonly config: RelayConfig
  /** The text of the file that it was read from. */
  readonly file: string | null
}

export interface PrimaryParts extends MemoryParts, ConfigWithFile {
  readonly log: Logger
  readonly graceMs: number
  /** Reads the file again. */
  readonly reload: (current: RelayConfig) => { readonly outcome: Reload; readonly file: string | null }
}

/** The process that starts the workers and owns what they share. It serves no clients itself. */
export const runPrimary = async (parts: PrimaryParts): Promise<Address> => {
  const { log, graceMs } = parts
  let { config, file } = parts
  const owner = new ChannelOwner(parts)
  const fleet = new FleetDesk()
  const admission = new AdmissionDesk(parts.monotonicMs)
  const metrics = new MetricsDesk()
  const workers = new WorkerProcesses({
    count: config.workers,
    log,
    file: () => file,
    serve: (link, number) => {
      owner.serve(link)
      fleet.serve(link)
      admission.serve(link)
      metrics.serve(link, number)
    }
  })
  setInterval(() => owner.sweep(), SWEEP_MS).unref()

  const configure = async (): Promise<void> => {
    const reload = parts.reload(config)
    if (!reload.outcome.ok) {
      log.error({ faults: reload.outcome.faults }, 'the new config is refused, the old one stays')
      return
    }
    config = reload.outcome.config
    file = reload.file
    const write = (link: (typeof workers.links)[number]): Promise<null> =>
      link.ask(
        'configure',
        (out) => out.textOrNull(file),
        () => null
      )
    await Promise.all(workers.links.map((link) => within(RELOAD_MS, write(link))))
    log.info({ needsRestart: reload.outcome.needsRestart }, 'config reloaded')
  }

  closeOnSignal({ close: () => workers.stop(), cutOff: () => workers.kill() }, log, graceMs)
  const address = await workers.start()
  onHangup(() => void configure())
  return address
}
