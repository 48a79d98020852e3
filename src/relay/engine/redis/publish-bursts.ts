import { MAX_AT_ONCE } from './scripts.js'

/** Of all bodies of a burst; a body that is longer goes alone. */
const MAX_CHARACTERS = 256 * 1024

export interface KeptPublication {
  readonly body: string
  readonly version: number
  readonly versionEpoch: string
  /** Where its result is found by others with the same idempotency key; '' for nowhere. */
  readonly resultKey: string
}

interface Burst {
  readonly name: string
  /** What the script is told about the channel. */
  readonly channelArguments: readonly string[]
  readonly calls: Call[]
  characters: number
}

interface Call {
  readonly publication: KeptPublication
  readonly done: (answer: string) => void
  readonly failed: (error: Error) => void
}

/**
 * Gathers what is published to a channel within one turn of the event loop, so that a burst is one command to Redis and one
 * answer: finding its place, writing and answering cost both sides more than the publications do.
 */
export class PublishBursts {
  readonly #run: (keys: readonly string[], args: readonly string[]) => Promise<unknown>
  readonly #sharedKeys: readonly string[]
  #bursts = new Map<string, Burst>()

  /** `run` makes the publications of a burst, in their order, and answers for each. `sharedKeys` are for every script. */
  constructor(
    sharedKeys: readonly string[],
    run: (keys: readonly string[], args: readonly string[]) => Promise<unknown>
  ) {
    this.#sharedKeys = sharedKeys
    this.#run = run
  }

  add(name: string, channelArguments: readonly string[], publication: KeptPublication): Promise<string> {
    let burst = this.#bursts.get(name)
    if (burst !== undefined && isFull(burst, publication)) {
      this.#bursts.delete(name)
      this.#send(burst)
      burst = undefined
    }
    if (burst === undefined) {
      burst = { name, channelArguments, calls: [], characters: 0 }
      this.#bursts.set(name, burst)
    }
    const { calls } = burst
    burst.characters += publication.body.length
    return new Promise((done, failed) => {
      calls.push({ publication, done, failed })
    })
  }

  /** To be called at the end of the turn, and before anything is sent that must not overtake what was published. */
  leave(): void {
    if (this.#bursts.size === 0) return
    const bursts = this.#bursts
    // Not cleared: what a cleared map held is kept from the garbage collector by those that were cleared before.
    this.#bursts = new Map()
    for (const burst of bursts.values()) this.#send(burst)
  }

  #send({ name, channelArguments, calls }: Burst): void {
    const keys = [`${name}place`, `${name}stream`, name, ...this.#sharedKeys]
    const args = [...channelArguments]
    for (const { publication } of calls) {
      const { body, version, versionEpoch, resultKey } = publication
      const isResultKept = resultKey !== ''
      if (isResultKept) keys.push(resultKey)
      args.push(body, String(body.length), String(version), versionEpoch, isResultKept ? String(keys.length) : '')
    }
    this.#run(keys, args).then(
      (answers) => {
        for (const [index, { done }] of calls.entries()) done((answers as readonly string[])[index] as string)
      },
      (error: Error) => {
        for (const { failed } of calls) failed(error)
      }
    )
  }
}

const isFull = ({ calls, characters }: Burst, { body }: KeptPublication): boolean =>
  calls.length === MAX_AT_ONCE || characters + body.length > MAX_CHARACTERS
