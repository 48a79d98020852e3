import { connectionsAllowed } from '../harness/open-files.js'
import { type BenchProcess, LOAD_CORE, startProcess } from '../harness/process.js'
import { SECRET } from './running-server.js'
import type { ConnectOrder, ScaleFigures, ScaleOrder } from './scale-clients.js'

const AT_ONCE = 256
/** Outgoing ports of an address that the run uses for one port of the relay; the kernel's default range has 28,000. */
const PORTS_PER_ADDRESS = 15_000

export type ScaleTarget = Pick<ConnectOrder, 'ports' | 'channels' | 'readEvery'>

/** The clients, in as many processes as the limit of open files requires. */
export class ScaleClients {
  readonly #connections: number
  readonly #processes: readonly BenchProcess[]

  constructor(connections: number) {
    this.#connections = connections
    this.#processes = Array.from({ length: Math.ceil(connections / connectionsAllowed()) }, () =>
      startProcess(LOAD_CORE, new URL('./scale-clients.js', import.meta.url))
    )
  }

  connect(target: ScaleTarget): Promise<ScaleFigures> {
    const share = Math.ceil(this.#connections / this.#processes.length)
    const addresses = Math.ceil(this.#connections / target.ports.length / PORTS_PER_ADDRESS)
    const hosts = Array.from({ length: addresses }, (_, index) => `127.0.0.${index + 1}`)
    return this.#request((index) => {
      const first = index * share
      const clients = Math.min(share, this.#connections - first)
      const atOnce = Math.ceil(AT_ONCE / this.#processes.length)
      return { kind: 'connect', ...target, hosts, secret: SECRET, clients, first, atOnce }
    })
  }

  /** The deliveries and latencies of the clients since the last request. */
  figures(): Promise<ScaleFigures> {
    return this.#request(() => ({ kind: 'figures' }))
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((each) => each.stop()))
  }

  /** Percentiles of several processes cannot be joined exactly; the worst of them is an upper bound. */
  async #request(orderOf: (index: number) => ScaleOrder): Promise<ScaleFigures> {
    const results = await Promise.all(
      this.#processes.map(async (each, index): Promise<ScaleFigures> => {
        each.writeLine(JSON.stringify(orderOf(index)))
        const [, json = ''] = await each.line(/^result (.*)$/)
        const result = JSON.parse(json)
        if (result.error !== undefined) throw new Error(result.error)
        return result
      })
    )
    const sum = (pick: (figures: ScaleFigures) => number): number => results.reduce((all, each) => all + pick(each), 0)
    const worst = (pick: (figures: ScaleFigures) => number): number =>
      Math.max(...results.map(pick).filter((value) => Number.isFinite(value)))
    return {
      connected: sum(({ connected }) => connected),
      deliveries: sum((each) => each.deliveries),
      lastAt: worst(({ lastAt }) => lastAt),
      pauseMs: worst(({ pauseMs }) => pauseMs),
      p50: worst(({ p50 }) => p50),
      p99: worst(({ p99 }) => p99),
      p999: worst(({ p999 }) => p999)
    }
  }
}
