import { setTimeout as wait } from 'node:timers/promises'

const BREATH_MS = 20

/** Calls that go on, some at a time, until they are told to stop. */
export class Load {
  readonly #underWay = new Set<Promise<void>>()
  readonly #faults: string[] = []
  #done = 0
  #stopped = false

  /** `call` throws, or resolves to what is wrong, or to nothing when all is well. Its argument counts all calls from 1 on. */
  constructor(atATime: number, call: (count: number) => Promise<string | undefined>) {
    let count = 0
    const goOn = async (): Promise<void> => {
      while (!this.#stopped) {
        const called = this.#one(call, ++count)
        this.#underWay.add(called)
        await called
        this.#underWay.delete(called)
        // the programs that are started meanwhile need the machine too
        await wait(BREATH_MS)
      }
    }
    for (let runner = 0; runner < atATime; runner++) void goOn()
  }

  async #one(call: (count: number) => Promise<string | undefined>, count: number): Promise<void> {
    try {
      const fault = await call(count)
      if (fault === undefined) this.#done += 1
      else this.#faults.push(fault)
    } catch (error) {
      this.#faults.push(String(error))
    }
  }

  get faults(): readonly string[] {
    return this.#faults
  }

  /** How many went well. */
  get done(): number {
    return this.#done
  }

  /** Resolves when everything that is under way now has ended. */
  async settled(): Promise<void> {
    await Promise.all([...this.#underWay])
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.settled()
  }
}
