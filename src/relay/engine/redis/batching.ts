import type { Redis } from 'ioredis'
import type { Script } from './lua-script.js'
import { MAX_PUBLICATIONS_PER_SCRIPT } from './publish-scripts.js'

/** Splits a list into chunks of at most `size` entries. */
export const chunks = <T>(list: readonly T[], size: number): (readonly T[])[] =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, index) => list.slice(index * size, (index + 1) * size))

/**
 * Corks a connection until the end of the event loop turn, so that all commands of the turn leave in one write. This uses the
 * socket of ioredis, a public property that its documentation does not describe. The documented `pipeline`, which
 * `enableAutoPipelining` uses too, takes twice the CPU time for 100 publications, and single writes take half as much again.
 * Without the socket, commands leave one by one.
 */
export class WriteBatcher {
  readonly #redis: Redis
  readonly #beforeUncork: () => void
  #isCorked = false

  /** `beforeUncork` may send further commands that leave with the same write. */
  constructor(redis: Redis, beforeUncork: () => void = () => undefined) {
    this.#redis = redis
    this.#beforeUncork = beforeUncork
  }

  cork(): void {
    if (this.#isCorked) return
    const { stream } = this.#redis
    // ioredis has no stream before the first connection.
    if (stream === undefined) return
    this.#isCorked = true
    stream.cork()
    setImmediate(() => {
      this.#beforeUncork()
      this.#isCorked = false
      stream.uncork()
    })
  }
}

/** Limit for the bodies of one batch together; a longer body is sent alone. */
const MAX_BATCH_CHARACTERS = 256 * 1024

/** A channel and the script that takes several calls for it. */
export interface BatchTarget {
  readonly topic: string
  readonly script: Script
  /** The keys before those of the batcher and of idempotency results. */
  keys(topic: string): readonly string[]
  /** The arguments before those of the calls. */
  readonly args: readonly string[]
}

/** A publication to be appended to a stream, or a change of a map. */
export interface BatchedCall {
  /** Without the last one, the index of the result key. */
  readonly args: readonly string[]
  /** Length of the body. */
  readonly characters: number
  /** Redis key of the result for the idempotency key; '' without one. */
  readonly resultKey: string
}

interface QueuedCall {
  readonly call: BatchedCall
  readonly resolve: (reply: string) => void
  readonly reject: (error: Error) => void
}

interface ScriptBatch {
  readonly target: BatchTarget
  readonly calls: QueuedCall[]
  characters: number
}

/**
 * Collects the publications to each channel, or the changes of each map, within one event loop turn and sends them as one script
 * call. The overhead of a call is larger than the cost of a publication, both here and in Redis.
 */
export class ScriptBatcher {
  readonly #runScript: (script: Script, keys: readonly string[], args: readonly string[]) => Promise<readonly string[]>
  readonly #sharedKeys: readonly string[]
  /** By topic. */
  #batches = new Map<string, ScriptBatch>()

  /** `runScript` applies the calls of a batch in order and returns one reply for each. `sharedKeys` go to every call. */
  constructor(
    sharedKeys: readonly string[],
    runScript: (script: Script, keys: readonly string[], args: readonly string[]) => Promise<readonly string[]>
  ) {
    this.#sharedKeys = sharedKeys
    this.#runScript = runScript
  }

  add(target: BatchTarget, call: BatchedCall): Promise<string> {
    const { topic } = target
    let batch = this.#batches.get(topic)
    if (batch !== undefined && (isFull(batch, call) || batch.target.script !== target.script)) {
      this.#batches.delete(topic)
      this.#send(batch)
      batch = undefined
    }
    if (batch === undefined) {
      batch = { target, calls: [], characters: 0 }
      this.#batches.set(topic, batch)
    }
    const { calls } = batch
    batch.characters += call.characters
    return new Promise((resolve, reject) => {
      calls.push({ call, resolve, reject })
    })
  }

  /** Called at the end of the turn, and before any command that must not overtake the collected calls. */
  flush(): void {
    if (this.#batches.size === 0) return
    const batches = this.#batches
    // A new map instead of clear(): the garbage collector keeps the entries of cleared maps alive for longer.
    this.#batches = new Map()
    for (const batch of batches.values()) this.#send(batch)
  }

  #send({ target, calls }: ScriptBatch): void {
    const keys = [...target.keys(target.topic), ...this.#sharedKeys]
    const args = [...target.args]
    for (const { call } of calls) {
      const { resultKey } = call
      if (resultKey !== '') keys.push(resultKey)
      args.push(...call.args, resultKey === '' ? '' : String(keys.length))
    }
    this.#runScript(target.script, keys, args).then(
      (replies) => {
        for (const [index, { resolve }] of calls.entries()) resolve(replies[index] ?? '')
      },
      (error: Error) => {
        for (const { reject } of calls) reject(error)
      }
    )
  }
}

const isFull = ({ calls, characters }: ScriptBatch, call: BatchedCall): boolean =>
  calls.length === MAX_PUBLICATIONS_PER_SCRIPT || characters + call.characters > MAX_BATCH_CHARACTERS

/**
 * Equal reads of one event loop turn share a script call: after a restart, thousands of clients recover the same publications.
 * The call leaves at the end of the turn, so its result contains everything delivered before.
 */
export class SharedReads<T> {
  readonly #readsOfTurn = new Map<string, Promise<T>>()

  share(key: string, read: () => Promise<T>): Promise<T> {
    const shared = this.#readsOfTurn.get(key)
    if (shared !== undefined) return shared
    if (this.#readsOfTurn.size === 0) setImmediate(() => this.#readsOfTurn.clear())
    const started = read()
    this.#readsOfTurn.set(key, started)
    return started
  }
}
