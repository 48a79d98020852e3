import { setTimeout } from 'node:timers/promises'
import { cpuMicroseconds } from '../harness/cpu.js'
import { type BenchProcess, LOAD_CORE, startProcess } from '../harness/process.js'
import type { LoadResult, OpenOrder, Order } from './load.js'
import type { Reading } from './report.js'
import { type RunningServer, SECRET } from './running-server.js'

/** The process of the load generator. */
export class Load {
  readonly #process: BenchProcess

  constructor(core: string = LOAD_CORE) {
    this.#process = startProcess(core, new URL('./load.js', import.meta.url))
  }

  async run(order: Order): Promise<LoadResult> {
    this.#process.writeLine(JSON.stringify(order))
    const [, json = ''] = await this.#process.line(/^result (.*)$/)
    const result = JSON.parse(json)
    if (result.error !== undefined) throw new Error(`${order.kind}: ${result.error}`)
    return result
  }

  stop(): Promise<void> {
    return this.#process.stop()
  }
}

export const openOrder = ({ ports, dialect }: RunningServer, clients: number, channels: number): OpenOrder => ({
  kind: 'open',
  ports,
  dialect,
  secret: SECRET,
  clients,
  channels
})

export const measure = async (
  load: Load,
  { pids }: RunningServer,
  order: Order,
  per: 'count' | 'deliveries'
): Promise<Reading> => {
  const cpuOfAll = (): number => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0)
  const before = cpuOfAll()
  const result = await load.run(order)
  const cpu = cpuOfAll() - before
  const { seconds, share, p50, p99, p999 } = result
  return {
    value: cpu / result[per],
    rate: result[per] / seconds,
    p50,
    p99,
    p999,
    serverShare: cpu / 1e6 / seconds,
    loadShare: share
  }
}

/** Lets servers process the disconnects before the next reading. */
const SETTLE_MS = 500
export const closeAll = async (load: Load): Promise<void> => {
  await load.run({ kind: 'close' })
  await setTimeout(SETTLE_MS)
}
