import type { Redis } from 'ioredis'
import { channelKey } from './keys.js'
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

/** A publication to be appended to a stream. */
export interface StoredPublication {
  readonly body: string
  readonly version: number
  readonly versionEpoch: string
  /** Redis key of the result for the publication's idempotency key; '' without one. */
  readonly resultKey: string
}

interface PublishBatch {
  readonly topic: string
  /** Script arguments that describe the channel's history. */
  readonly historyArguments: readonly string[]
  readonly calls: PublishCall[]
  characters: number
}

interface PublishCall {
  readonly publication: StoredPublication
  readonly resolve: (reply: string) => void
  readonly reject: (error: Error) => void
}

/**
 * Collects the publications to each channel within one event loop turn and sends them as one script call. The overhead of a
 * call is larger than the cost of a publication, both here and in Redis.
 */
export class PublishBatcher {
  readonly #runScript: (keys: readonly string[], args: readonly string[]) => Promise<readonly string[]>
  readonly #sharedKeys: readonly string[]
  #batches = new Map<string, PublishBatch>()

  /** `runScript` appends the publications of a batch in order and returns one reply for each. `sharedKeys` go to every call. */
  constructor(
    sharedKeys: readonly string[],
    runScript: (keys: readonly string[], args: readonly string[]) => Promise<readonly string[]>
  ) {
    this.#sharedKeys = sharedKeys
    this.#runScript = runScript
  }

  add(topic: string, historyArguments: readonly string[], publication: StoredPublication): Promise<string> {
    let batch = this.#batches.get(topic)
    if (batch !== undefined && isFull(batch, publication)) {
      this.#batches.delete(topic)
      this.#send(batch)
      batch = undefined
    }
    if (batch === undefined) {
      batch = { topic, historyArguments, calls: [], characters: 0 }
      this.#batches.set(topic, batch)
    }
    const { calls } = batch
    batch.characters += publication.body.length
    return new Promise((resolve, reject) => {
      calls.push({ publication, resolve, reject })
    })
  }

  /** Called at the end of the turn, and before any command that must not overtake the collected publications. */
  flush(): void {
    if (this.#batches.size === 0) return
    const batches = this.#batches
    // A new map instead of clear(): the garbage collector keeps the entries of cleared maps alive for longer.
    this.#batches = new Map()
    for (const batch of batches.values()) this.#send(batch)
  }

  #send({ topic, historyArguments, calls }: PublishBatch): void {
    const keys = [channelKey(topic, 'position'), channelKey(topic, 'stream'), topic, ...this.#sharedKeys]
    const args = [...historyArguments]
    for (const { publication } of calls) {
      const { body, version, versionEpoch, resultKey } = publication
      const hasResultKey = resultKey !== ''
      if (hasResultKey) keys.push(resultKey)
      args.push(body, String(body.length), String(version), versionEpoch, hasResultKey ? String(keys.length) : '')
    }
    this.#runScript(keys, args).then(
      (replies) => {
        for (const [index, { resolve }] of calls.entries()) resolve(replies[index] ?? '')
      },
      (error: Error) => {
        for (const { reject } of calls) reject(error)
      }
    )
  }
}

const isFull = ({ calls, characters }: PublishBatch, { body }: StoredPublication): boolean =>
  calls.length === MAX_PUBLICATIONS_PER_SCRIPT || characters + body.length > MAX_BATCH_CHARACTERS
