import { CLIENT_CODES, RelayError } from './relay-error.js'

/** Publications that wait for a consumer. */
const MAX_WAITING = 1000

interface Waiter<Value> {
  resolve(result: IteratorResult<Value, undefined>): void
  reject(error: RelayError): void
}

/**
 * An async iterator over the publications of a subscription. If a consumer is so slow that too many of them wait, it receives
 * those and then an error, so that a loss is not silent.
 */
export class PublicationIterator<Value> implements AsyncIterableIterator<Value, undefined> {
  readonly #values: Value[] = []
  readonly #waiters: Waiter<Value>[] = []
  readonly #leave: () => void
  #end: RelayError | 'done' | null = null

  /** `leave` is called when the consumer leaves its loop. */
  constructor(leave: () => void) {
    this.#leave = leave
  }

  push(value: Value): void {
    if (this.#end !== null) return
    const waiter = this.#waiters.shift()
    if (waiter !== undefined) waiter.resolve({ value, done: false })
    else if (this.#values.length < MAX_WAITING) this.#values.push(value)
    else {
      const message = `the consumer is too slow: ${MAX_WAITING} publications are waiting`
      this.finish(new RelayError({ code: CLIENT_CODES.slowConsumer, message, temporary: false }))
    }
  }

  /** Ends the iteration after the waiting publications, with an error if there is one. */
  finish(error: RelayError | null): void {
    if (this.#end !== null) return
    this.#end = error ?? 'done'
    for (const waiter of this.#waiters.splice(0)) this.#settle(waiter)
  }

  #settle({ resolve, reject }: Waiter<Value>): void {
    const end = this.#end
    if (!(end instanceof RelayError)) {
      resolve({ value: undefined, done: true })
      return
    }
    // An error is thrown once.
    this.#end = 'done'
    reject(end)
  }

  next(): Promise<IteratorResult<Value, undefined>> {
    const [value] = this.#values
    if (this.#values.length > 0) {
      this.#values.shift()
      // The list is not empty.
      return Promise.resolve({ value: value as Value, done: false })
    }
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject }
      if (this.#end === null) this.#waiters.push(waiter)
      else this.#settle(waiter)
    })
  }

  async return(): Promise<IteratorResult<Value, undefined>> {
    this.#values.length = 0
    this.finish(null)
    this.#leave()
    return { value: undefined, done: true }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
