import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { userDetails } from '../../shared/app-token.js'
import { BoundedMap } from '../../shared/bounded-map.js'
import type { AuditLog } from '../audit/audit-log.js'
import { GatewayError } from '../errors.js'
import { addressGroup, routeLabel } from '../http/client-request.js'
import type { SecretPaths } from '../http/secret-paths.js'
import { pathTemplate } from '../routes/tables/declare.js'
import { requestedPath } from './limited-path.js'
import { appliesTo, type RequestLimit } from './limits-file.js'
import type { RedisBuckets } from './redis-buckets.js'
import { type BucketResult, MemoryBuckets } from './token-buckets.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The state of the buckets of the client's address. */
    addressBuckets: readonly BucketResult[] | Promise<readonly BucketResult[]> | null
  }
}

export interface RequestLimitsOptions {
  readonly limits: readonly RequestLimit[]
  /** Null if the buckets are not shared. */
  readonly shared: RedisBuckets | null
  readonly audit: AuditLog
  /** Which paths the audit log must not contain. */
  readonly secretPaths: SecretPaths
  readonly monotonicMs: () => number
}

const AUDIT_INTERVAL_MS = 60_000
const MIN_AUDITED = 10_000
const NONE: readonly BucketResult[] = []

/**
 * Limits requests by user and address. Limits by address are checked where the login limit is, those by user after
 * authentication. With Redis both are requested before either is awaited. While it is unavailable, each gateway counts on its own.
 */
export class RequestLimits {
  readonly #options: RequestLimitsOptions
  readonly #buckets: MemoryBuckets
  readonly #byAddress: readonly RequestLimit[]
  readonly #byUser: readonly RequestLimit[]
  /** When the last audit record of a bucket was written. */
  readonly #audited = new BoundedMap<string, number>(MIN_AUDITED)
  /** The templates of routes by the form that Fastify has for them. */
  readonly #templates = new Map<string, string>()

  constructor(options: RequestLimitsOptions) {
    this.#options = options
    this.#buckets = new MemoryBuckets(options.limits, options.monotonicMs)
    this.#byAddress = options.limits.filter(({ by }) => by !== 'user')
    this.#byUser = options.limits.filter(({ by }) => by !== 'address')
  }

  /** The number of buckets in memory. */
  get size(): number {
    return this.#buckets.size
  }

  /** Whether requests are counted by this gateway alone although Redis is configured. */
  get isLocal(): boolean {
    return this.#options.shared?.isUp === false
  }

  addAddressHook(app: FastifyInstance): void {
    app.decorateRequest('addressBuckets', null)
    app.addHook('onRequest', (request, reply, done) => {
      const limits = this.#applying(this.#byAddress, request)
      if (limits.length === 0) return done()
      const taken = this.#take(limits, addressSubject(request))
      request.addressBuckets = taken
      done(taken instanceof Promise ? undefined : this.#check(request, reply, taken))
    })
  }

  addUserHook(app: FastifyInstance): void {
    app.addHook('onRequest', (request, reply, done) => {
      const limits = this.#applying(this.#byUser, request)
      const id = request.auth === null ? null : userDetails(request.auth).id
      // A request without a user counts for its address, once.
      const own = id === null ? limits.filter(({ by }) => by === 'user') : limits
      const subject = id === null ? addressSubject(request) : `user ${id}`
      const taken = own.length === 0 ? NONE : this.#take(own, subject)
      const earlier = request.addressBuckets ?? NONE
      if (!(taken instanceof Promise) && !(earlier instanceof Promise)) {
        if (taken.length === 0) return done()
        return done(this.#check(request, reply, [...earlier, ...taken]))
      }
      Promise.all([earlier, taken]).then(([one, two]) => done(this.#check(request, reply, [...one, ...two])), done)
    })
  }

  close(): void {
    this.#options.shared?.close()
  }

  #applying(limits: readonly RequestLimit[], request: FastifyRequest): readonly RequestLimit[] {
    if (limits.length === 0) return limits
    const requested = requestedPath(request.path, this.#templateOf(request))
    return limits.filter((limit) => appliesTo(limit, request.method, requested))
  }

  #templateOf(request: FastifyRequest): string {
    const { template: described } = request.routeOptions.config
    if (described !== undefined) return described
    const label = routeLabel(request)
    const known = this.#templates.get(label)
    if (known !== undefined) return known
    const template = pathTemplate(label)
    this.#templates.set(label, template)
    return template
  }

  #take(limits: readonly RequestLimit[], subject: string): readonly BucketResult[] | Promise<readonly BucketResult[]> {
    const { shared } = this.#options
    if (shared === null || !shared.isUp) return this.#buckets.take(limits, subject)
    return shared.take(limits, subject).then((results) => results ?? this.#buckets.take(limits, subject))
  }

  /** Sets the headers of the bucket that is nearest to its limit. Returns the error of a request that is not allowed. */
  #check(request: FastifyRequest, reply: FastifyReply, results: readonly BucketResult[]): GatewayError | undefined {
    const tightest = results.reduce((one, other) => (isTighter(other, one) ? other : one))
    const headers = {
      'ratelimit-limit': String(tightest.limit.burst),
      'ratelimit-remaining': String(tightest.remaining),
      'ratelimit-reset': String(Math.ceil(tightest.fullMs / 1000))
    }
    if (tightest.isAllowed) {
      reply.headers(headers)
      return undefined
    }
    this.#audit(request, tightest)
    const wait = String(Math.max(1, Math.ceil(tightest.waitMs / 1000)))
    return new GatewayError('RATE_LIMITED', { headers: { ...headers, 'retry-after': wait } })
  }

  /** At most once a minute for each bucket. */
  #audit(request: FastifyRequest, { limit: { name }, subject }: BucketResult): void {
    const { audit, secretPaths, monotonicMs } = this.#options
    const bucket = `${name} ${subject}`
    const now = monotonicMs()
    if (now - (this.#audited.get(bucket) ?? Number.NEGATIVE_INFINITY) < AUDIT_INTERVAL_MS) return
    this.#audited.set(bucket, now)
    audit.record({
      event: 'rate_limited',
      ip: request.clientAddress,
      resource: secretPaths.masked(request.path),
      method: request.method,
      status: 429,
      reason: `limit-${name}`,
      user: request.auth === null ? null : userDetails(request.auth),
      requestId: request.id,
      userAgent: request.headers['user-agent'] ?? null
    })
  }
}

const addressSubject = ({ clientAddress }: FastifyRequest): string => `address ${addressGroup(clientAddress)}`

const isTighter = (one: BucketResult, other: BucketResult): boolean =>
  one.isAllowed === other.isAllowed
    ? one.isAllowed
      ? one.remaining < other.remaining
      : one.waitMs > other.waitMs
    : !one.isAllowed
