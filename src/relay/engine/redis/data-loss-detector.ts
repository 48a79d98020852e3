import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Position } from '../../core/publication.js'
import { chunks } from './batching.js'
import type { Script } from './lua-script.js'
import { CONFIRM_RUN, FIND_ROLLBACK, HEARTBEAT } from './node-scripts.js'

/** How long a node waits for the other nodes to confirm that a restarted server has their writes. */
const CONFIRMATION_TIMEOUT_MS = 5_000
const RETRY_MS = 100
/** A node without a heartbeat for this long is not waited for. */
const NODE_LEASE_MS = '10000'
const LEDGER_TTL_MS = String(30 * 24 * 60 * 60 * 1000)
const POSITIONS_PER_SCRIPT = 200

export interface DataLossDetectorDependencies {
  /** Redis key of the ledger: a hash with the number of the last write of each node. */
  readonly ledgerKey: string
  /** Unique id of this process. */
  readonly node: string
  /** The positions delivered to this node for the channels of this server, by Redis key of the position. */
  positions(): Iterable<readonly [key: string, position: Position]>
}

export type RunScript = (script: Script, keys: readonly string[], args: readonly string[]) => Promise<unknown>

/**
 * Detects whether a Redis server that was restarted, or replaced by a replica, lost writes. Every node numbers its writes, and
 * each write stores its number in the ledger. A server that comes back with older data has an older number. Redis persists and
 * replicates writes in order, so nothing is lost if every node that wrote finds its last number and all positions that were
 * delivered to it. The streams then keep their epochs; otherwise a new generation begins, and with it new epochs.
 */
export class DataLossDetector {
  readonly #dependencies: DataLossDetectorDependencies
  #lastSent = 0
  #lastAcknowledged = 0
  /** The run and the replication id of the server that was used last. */
  #run = ''
  #generation = ''

  constructor(dependencies: DataLossDetectorDependencies) {
    this.#dependencies = dependencies
  }

  get ledgerKey(): string {
    return this.#dependencies.ledgerKey
  }

  /** Arguments of HDEL that remove this node from the ledger. */
  get ownFields(): readonly string[] {
    const { ledgerKey, node } = this.#dependencies
    return [ledgerKey, `s:${node}`, `t:${node}`, `v:${node}`]
  }

  /** Runs a script that records a numbered write. The node and the number are its first arguments. */
  async runWrite(run: RunScript, script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const number = ++this.#lastSent
    const reply = await run(script, keys, [this.#dependencies.node, String(number), ...args])
    this.#lastAcknowledged = Math.max(this.#lastAcknowledged, number)
    return reply
  }

  /** A numbered write that renews the lease of this node, and a message to `topic`, to which this node is subscribed. */
  heartbeat(run: RunScript, topic: string, publishCommand: string, topicSuffix: string): Promise<unknown> {
    const args = [NODE_LEASE_MS, LEDGER_TTL_MS, publishCommand, topicSuffix]
    return this.runWrite(run, HEARTBEAT, [this.ledgerKey, topic], args)
  }

  /** Resolves when all nodes agree on the generation for this run of the server. True if the generation is a new one. */
  async confirmRun(run: RunScript, runId: string, replicationId: string): Promise<boolean> {
    const currentRun = `${runId} ${replicationId}`
    const isRestarted = this.#run !== '' && this.#run !== currentRun
    const hasRollback = isRestarted && (await this.#findRollback(run))
    // Unique: a server that becomes the master again has the `run_id` of an earlier generation.
    const newGeneration = `${runId}-${randomBytes(6).toString('base64url')}`
    const deadline = performance.now() + CONFIRMATION_TIMEOUT_MS
    for (;;) {
      const isTimedOut = performance.now() >= deadline
      const outcome = await run(
        CONFIRM_RUN,
        [this.ledgerKey],
        [
          runId,
          this.#dependencies.node,
          String(this.#lastAcknowledged),
          isRestarted ? '1' : '0',
          hasRollback ? '1' : '0',
          isTimedOut ? '1' : '0',
          LEDGER_TTL_MS,
          this.#generation,
          newGeneration
        ]
      )
      if (outcome !== 'wait') {
        const isNew = outcome !== this.#generation
        this.#run = currentRun
        this.#generation = String(outcome)
        return isNew
      }
      await setTimeout(RETRY_MS)
    }
  }

  async #findRollback(run: RunScript): Promise<boolean> {
    for (const batch of chunks([...this.#dependencies.positions()], POSITIONS_PER_SCRIPT)) {
      const keys = batch.map(([key]) => key)
      const args = batch.flatMap(([, { epoch, offset }]) => [epoch, String(offset)])
      if ((await run(FIND_ROLLBACK, keys, args)) === 1) return true
    }
    return false
  }
}
