import { LOAD_CORE, startProcess } from '../harness/process.js'
import type { LoadResult, Order } from './load.js'
import type { RunningServer } from './servers.js'

export const CONNECTIONS = 64

/** The process of the load generator. */
export class Load {
  readonly #process = startProcess(LOAD_CORE, new URL('./load.js', import.meta.url))

  /** Sends the requests of an order to a server; a response other than 200 is an error. */
  async send({ port }: RunningServer, order: Omit<Order, 'port' | 'connections'>): Promise<LoadResult> {
    const whole: Order = { port, connections: CONNECTIONS, ...order }
    this.#process.writeLine(JSON.stringify(whole))
    const [, json = ''] = await this.#process.line(/^result (.*)$/)
    const result: LoadResult = JSON.parse(json)
    if (result.errors > 0) throw new Error(`${result.errors} of ${order.requests} responses were not 200`)
    return result
  }

  stop(): Promise<void> {
    return this.#process.stop()
  }
}
