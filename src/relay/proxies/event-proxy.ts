import type { Span, Tracer } from '../../shared/tracing.js'
import type { ProxyOptions } from '../config/proxy-options.js'
import type { ProxyEvent } from '../config/proxy-selection.js'
import type { Clocks } from '../core/clocks.js'
import { ERROR_INTERNAL, ERROR_TOO_MANY_REQUESTS, ReplyError } from '../core/codes.js'
import type { EventSource, PendingCall } from '../core/event-proxies.js'
import { InvalidField, type JsonFields } from '../json-fields.js'
import type { RateLimitedLog } from '../transport/rejections.js'
import { type EndpointResponse, type FailedRequest, ProxyEndpoint } from './endpoint.js'
import { HealthRecord, type ProxyStatus } from './health.js'
import { endProxySpan, startProxySpan } from './proxy-span.js'
import type { Body } from './request-body.js'
import { requestHeaders, signatureHeaders } from './request-headers.js'
import { type Decision, readResponse } from './response.js'

export interface ProxyMetrics {
  /** The number of requests under way. */
  proxyInFlight(event: ProxyEvent, proxy: string): { value: number }
  /** A call ended, also if it failed. */
  proxyCalled(event: ProxyEvent, proxy: string, seconds: number): void
  proxyFailed(event: ProxyEvent, proxy: string): void
}

export interface ProxyDependencies extends Clocks {
  readonly metrics: ProxyMetrics
  readonly log: RateLimitedLog
  /** Null if tracing is disabled. */
  readonly tracer: Tracer | null
}

/** A call without a usable response. */
export class FailedCall {
  /** Why, for the log. Contains nothing that a client or the backend sent. */
  readonly facts: { readonly reason: string; readonly cause?: string; readonly status?: number; readonly code?: number }

  constructor(facts: FailedCall['facts']) {
    this.facts = facts
  }

  /** For the client. */
  get reply(): ReplyError {
    return this.facts.reason === 'queue-full' ? ERROR_TOO_MANY_REQUESTS : ERROR_INTERNAL
  }
}

export type CallOutcome<Result> = Decision<Result> | FailedCall

/** How the request of an event is written and its result is read. */
export interface EventFormat<Event extends EventSource, Result> {
  readonly type: ProxyEvent
  readonly body: Body<Event>
  readonly readResult: (fields: JsonFields) => Result
}

/** One request, and what the log says about it. */
interface Request {
  readonly type: ProxyEvent
  readonly body: string
  readonly headers: string[]
  readonly span: Span | null
  readonly calls: Set<PendingCall> | null
  readonly facts: { readonly client?: string }
}

const NO_CLIENT = { requestHeaders: null, emulatedHeaders: null }

const OK = 200

/** A configured proxy: it sends events to its endpoint, and counts, logs and traces the calls. */
export class EventProxy {
  readonly options: ProxyOptions
  readonly #endpoint: ProxyEndpoint
  readonly #health: HealthRecord
  /** Kept, because finding them takes longer than counting. */
  readonly #inFlight = new Map<ProxyEvent, { value: number }>()
  readonly #dependencies: ProxyDependencies

  constructor(options: ProxyOptions, dependencies: ProxyDependencies) {
    this.options = options
    this.#endpoint = new ProxyEndpoint(options)
    this.#health = new HealthRecord(options.id, dependencies)
    this.#dependencies = dependencies
  }

  get status(): Omit<ProxyStatus, 'events'> {
    return { name: this.options.name, ...this.#health.current, ...this.#endpoint.load }
  }

  /** Never rejects. The outcome of an aborted call is of no use. */
  async call<Event extends EventSource, Result>(
    { type, body: bodyOf, readResult }: EventFormat<Event, Result>,
    event: Event
  ): Promise<CallOutcome<Result>> {
    const { tracer } = this.#dependencies
    const body = bodyOf(event, this.options)
    if (body === null) return this.#rejectEvent(type, event, 'data-not-json')
    const span = tracer === null ? null : startProxySpan(tracer, type, this.options)
    const headers = requestHeaders(this.options, event, span)
    if (headers === null) return this.#rejectEvent(type, event, 'invalid-header', span)
    const { client, calls } = event
    return this.#send({ type, body, headers, span, calls, facts: { client } }, (response) =>
      this.#outcomeOf(response, readResult)
    )
  }

  /** Sends events that belong to no client. Resolves with whether the backend has accepted them. Never rejects. */
  async notify(type: ProxyEvent, body: string): Promise<boolean> {
    const { tracer } = this.#dependencies
    const span = tracer === null ? null : startProxySpan(tracer, type, this.options)
    // Static headers have been checked.
    const headers = requestHeaders(this.options, NO_CLIENT, span) ?? []
    const outcome = await this.#send({ type, body, headers, span, calls: null, facts: {} }, (response) => {
      // Transforms are for clients.
      if ('status' in response && response.status !== OK)
        return new FailedCall({ reason: 'status', status: response.status })
      const decision = this.#outcomeOf(response, () => null)
      return decision instanceof ReplyError ? new FailedCall({ reason: 'rejected', code: decision.code }) : decision
    })
    return !(outcome instanceof FailedCall)
  }

  async #send<Outcome>(
    { type, body, headers, span, calls, facts }: Request,
    outcomeOf: (response: EndpointResponse | FailedRequest) => Outcome | FailedCall
  ): Promise<Outcome | FailedCall> {
    const { metrics, monotonicMs, nowMs } = this.#dependencies
    const { name, signingSecrets } = this.options
    const startedAt = monotonicMs()
    const inFlight = this.#inFlightOf(type)
    headers.push(...signatureHeaders(body, signingSecrets, nowMs()))
    const response = await this.#endpoint.post({ body, headers, calls, inFlight })
    const seconds = (monotonicMs() - startedAt) / 1000
    const outcome = outcomeOf(response)
    const failure = outcome instanceof FailedCall ? outcome.facts : null
    endProxySpan(span, 'status' in response ? response.status : 0, failure?.reason)
    // The client has left.
    if (failure?.reason === 'aborted') return outcome
    metrics.proxyCalled(type, name, seconds)
    if (failure === null) this.#health.succeeded()
    else {
      this.#health.failed(failure.status === undefined ? (failure.cause ?? failure.reason) : `status ${failure.status}`)
      metrics.proxyFailed(type, name)
      const key = `${type} ${name} ${failure.reason}`
      this.#dependencies.log.error(key, { event: type, proxy: name, ...facts, ...failure }, 'event proxy failed')
    }
    return outcome
  }

  #inFlightOf(type: ProxyEvent): { value: number } {
    const known = this.#inFlight.get(type)
    if (known !== undefined) return known
    const value = this.#dependencies.metrics.proxyInFlight(type, this.options.name)
    this.#inFlight.set(type, value)
    return value
  }

  /** Lets the calls under way end, each within its time limit. */
  close(): void {
    this.#endpoint.close()
  }

  /** The client sent what cannot be passed on. There is no call, so none has failed. */
  #rejectEvent(type: ProxyEvent, { client }: EventSource, reason: string, span: Span | null = null): FailedCall {
    const { name } = this.options
    endProxySpan(span, 0, reason)
    const facts = { event: type, proxy: name, client, reason }
    this.#dependencies.log.warn(`${type} ${name} ${reason}`, facts, 'event not sent to the backend')
    return new FailedCall({ reason })
  }

  #outcomeOf<Result>(
    response: EndpointResponse | FailedRequest,
    readResult: (fields: JsonFields) => Result
  ): CallOutcome<Result> {
    if ('failure' in response) {
      const { failure: reason, cause } = response
      return new FailedCall(cause === '' ? { reason } : { reason, cause })
    }
    const { status, body } = response
    if (status !== OK) return this.options.statusTransforms.get(status) ?? new FailedCall({ reason: 'status', status })
    try {
      return readResponse(body, readResult)
    } catch (error) {
      // The message of another error may quote the response.
      const cause = error instanceof InvalidField ? error.problem : 'unexpected error'
      return new FailedCall({ reason: 'invalid-response', cause })
    }
  }
}
