import { setTimeout } from 'node:timers/promises'
import type { Position } from '../../core/broker.js'
import { inBatches } from './engine.js'
import { ADOPT_RUN, BEAT, FIND_ROLLBACK, type Script } from './scripts.js'

/** How long a node waits for the others to vouch for a server that was restarted. */
const PATIENCE_MS = 5_000
const LOOK_AGAIN_MS = 100
/** A node that has written nothing for so long is not waited for. */
const LEASE_MS = '10000'
const TTL_MS = String(30 * 24 * 60 * 60 * 1000)
const POSITIONS_AT_ONCE = 200

export interface LedgerParts {
  readonly key: string
  /** Known to no other process. */
  readonly node: string
  /** What has been delivered here of the channels on this server: the key of their place, and the position. */
  positions(): Iterable<readonly [key: string, position: Position]>
}

export type RunScript = (script: Script, keys: readonly string[], args: readonly string[]) => Promise<unknown>

/**
 * Finds out whether a Redis server that was restarted, or replaced by its replica, still has everything. Every node numbers its
 * writes, and the server keeps the last number of each node with the data: a server that came back with older data has an older
 * number. The data is one sequence of writes, so it is whole when every node that wrote finds its last write, and all that was
 * delivered at it. Then the streams keep their epochs; otherwise a new generation begins, and with it new epochs.
 */
export class Ledger {
  readonly #parts: LedgerParts
  #sent = 0
  #acknowledged = 0
  #run = ''
  #generation = ''

  constructor(parts: LedgerParts) {
    this.#parts = parts
  }

  get key(): string {
    return this.#parts.key
  }

  /** The key, and what is about this node. */
  get ownFields(): readonly string[] {
    const { key, node } = this.#parts
    return [key, `s:${node}`, `t:${node}`, `v:${node}`]
  }

  /** Runs a script that writes down the number of this write, with the node and the number in front of its other arguments. */
  async write(run: RunScript, script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const number = ++this.#sent
    const answer = await run(script, keys, [this.#parts.node, String(number), ...args])
    this.#acknowledged = Math.max(this.#acknowledged, number)
    return answer
  }

  /** A write that says that this node is there, and a message to itself that shows whether it hears. */
  beat(run: RunScript, topic: string, publishCommand: string, topicEnd: string): Promise<unknown> {
    return this.write(run, BEAT, [this.key, topic], [LEASE_MS, TTL_MS, publishCommand, topicEnd])
  }

  /** Done when all nodes go by the same generation at this run of the server. True if it is another one than before. */
  async adopt(run: RunScript, serverRun: string): Promise<boolean> {
    const isRestarted = this.#run !== '' && this.#run !== serverRun
    const hasLost = isRestarted && (await this.#findsRollback(run))
    const deadline = performance.now() + PATIENCE_MS
    for (;;) {
      const isPatient = performance.now() < deadline
      const outcome = await run(
        ADOPT_RUN,
        [this.key],
        [
          serverRun,
          this.#parts.node,
          String(this.#acknowledged),
          this.#run,
          hasLost ? '1' : '0',
          isPatient ? '0' : '1',
          TTL_MS
        ]
      )
      if (outcome !== 'wait') {
        const isNew = outcome !== this.#generation
        this.#run = serverRun
        this.#generation = String(outcome)
        return isNew
      }
      await setTimeout(LOOK_AGAIN_MS)
    }
  }

  async #findsRollback(run: RunScript): Promise<boolean> {
    for (const batch of inBatches([...this.#parts.positions()], POSITIONS_AT_ONCE)) {
      const keys = batch.map(([key]) => key)
      const args = batch.flatMap(([, { epoch, offset }]) => [epoch, String(offset)])
      if ((await run(FIND_ROLLBACK, keys, args)) === 1) return true
    }
    return false
  }
}
