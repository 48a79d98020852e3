import { GatewayError } from '../errors.js'

/** A request that needs a connection to the backend. The callbacks are invoked at most once in total. */
export interface CapacityRequest {
  /** Whether the body is streamed: the client decides how long the connection is held. */
  readonly streams: boolean
  /** Whether the request has no verified token. Such requests get a limited share. */
  readonly anonymous: boolean
  /** The request may use a connection until it calls `release`. Must not cancel other requests synchronously. */
  onAcquired(waitedMs: number): void
  /** The queue is full, or the deadline has passed. */
  onRejected(error: GatewayError): void
}

export interface CapacityLimits {
  readonly connections: number
  /** Running and queued requests together. */
  readonly inFlight: number
  /** Share of connections, streaming connections and requests in flight that anonymous requests may use. */
  readonly anonymousPercent: number
  readonly maxWaitMs: number
}

interface QueueEntry {
  readonly request: CapacityRequest
  readonly since: number
  readonly deadline: NodeJS.Timeout
}

/**
 * Semaphore in front of the connection pool. Undici's own queue is unbounded, has no deadline, and a request cannot be
 * removed from it when its client disconnects. Requests are served in order of arrival; a request that must wait for
 * its share does not block the requests behind it.
 */
export class BackendCapacity {
  readonly #maxWaitMs: number
  readonly #total: Shares
  readonly #anonymous: Shares
  /**
   * An array, although requests are removed from its middle: a Map that is used as a queue replaces its table again and again, and
   * V8 links each old table to the next one. Tables that were promoted to the old generation then keep all later requests alive
   * until the next full collection.
   */
  readonly #queue: QueueEntry[] = []
  /** Set between a `release` and the next tick. New requests queue meanwhile, so that they do not overtake. */
  #isServingQueue = false

  constructor(limits: CapacityLimits) {
    this.#maxWaitMs = limits.maxWaitMs
    this.#total = sharesOf(limits, 100)
    this.#anonymous = sharesOf(limits, limits.anonymousPercent)
  }

  /** Running and queued requests. */
  get inFlight(): number {
    return this.#total.inFlight.used
  }

  /** Invokes one callback of the request: now, when a connection becomes free, or at the deadline. */
  acquire(request: CapacityRequest): void {
    if (!this.#isAvailable(request, 'inFlight')) {
      request.onRejected(overloaded())
      return
    }
    this.#add(request, 'inFlight', 1)
    if (this.#isServingQueue || !this.#canRun(request)) this.#enqueue(request)
    else this.#run(request, 0)
  }

  /** Removes a queued request. Has no effect on a request that is not queued. */
  cancel(request: CapacityRequest): void {
    const index = this.#queue.findIndex((entry) => entry.request === request)
    if (index === -1) return
    this.#dequeue(index)
    this.#add(request, 'inFlight', -1)
  }

  /** Ends a request whose `onAcquired` was called. */
  release(request: CapacityRequest): void {
    this.#add(request, 'inFlight', -1)
    this.#add(request, 'connections', -1)
    if (request.streams) this.#add(request, 'streams', -1)
    if (this.#queue.length === 0 || this.#isServingQueue) return
    // `release` is called from undici's callbacks. Dispatching inside such a callback breaks the connection's state.
    this.#isServingQueue = true
    process.nextTick(() => this.#serveQueue())
  }

  #serveQueue(): void {
    this.#isServingQueue = false
    let index = 0
    for (let entry = this.#queue[0]; entry !== undefined; entry = this.#queue[index]) {
      if (!hasFree(this.#total.connections)) return
      if (this.#canRun(entry.request)) {
        this.#dequeue(index)
        this.#run(entry.request, performance.now() - entry.since)
      } else index += 1
    }
  }

  #run(request: CapacityRequest, waitedMs: number): void {
    this.#add(request, 'connections', 1)
    if (request.streams) this.#add(request, 'streams', 1)
    request.onAcquired(waitedMs)
  }

  #enqueue(request: CapacityRequest): void {
    const deadline = setTimeout(() => {
      this.cancel(request)
      // If connections are free, only the anonymous share is exhausted, which is not a failure of the backend.
      const isShareExhausted = request.anonymous && hasFree(this.#total.connections)
      request.onRejected(isShareExhausted ? overloaded() : noFreeConnection())
    }, this.#maxWaitMs)
    this.#queue.push({ request, since: performance.now(), deadline })
  }

  #dequeue(index: number): void {
    for (const { deadline } of this.#queue.splice(index, 1)) clearTimeout(deadline)
  }

  #canRun(request: CapacityRequest): boolean {
    return this.#isAvailable(request, 'connections') && (!request.streams || this.#isAvailable(request, 'streams'))
  }

  #isAvailable({ anonymous }: CapacityRequest, resource: keyof Shares): boolean {
    return hasFree(this.#total[resource]) && (!anonymous || hasFree(this.#anonymous[resource]))
  }

  #add({ anonymous }: CapacityRequest, resource: keyof Shares, change: 1 | -1): void {
    this.#total[resource].used += change
    if (anonymous) this.#anonymous[resource].used += change
  }
}

interface Share {
  readonly max: number
  used: number
}

interface Shares {
  readonly connections: Share
  /** Half of the connections: uploads that never end must leave connections for other requests. */
  readonly streams: Share
  readonly inFlight: Share
}

const hasFree = ({ used, max }: Share): boolean => used < max

/** Every share is at least 1. Otherwise some requests could never be served. */
const sharesOf = ({ connections, inFlight }: CapacityLimits, percent: number): Shares => {
  const share = (total: number): Share => ({ max: Math.max(1, Math.floor((total * percent) / 100)), used: 0 })
  return { connections: share(connections), streams: share(Math.floor(connections / 2)), inFlight: share(inFlight) }
}

const noFreeConnection = (): GatewayError =>
  new GatewayError('BACKEND_TIMEOUT', { cause: new Error('no connection to the backend became free') })

const overloaded = (): GatewayError => new GatewayError('OVERLOADED', { headers: { 'retry-after': '1' } })

export interface Slot {
  readonly waitedMs: number
  readonly release: () => void
}

/** Waits for a connection on behalf of the gateway itself. */
export const acquireSlot = (capacity: BackendCapacity, anonymous: boolean, signal: AbortSignal): Promise<Slot> =>
  new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason)
      return
    }
    const request: CapacityRequest = {
      streams: false,
      anonymous,
      onAcquired: (waitedMs) => resolve({ waitedMs, release: () => capacity.release(request) }),
      onRejected: reject
    }
    capacity.acquire(request)
    signal.addEventListener('abort', () => {
      capacity.cancel(request)
      reject(signal.reason)
    })
  })
