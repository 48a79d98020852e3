import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { errorCode } from '../shared/error-code.js'
import { collectProcessMetrics } from '../shared/process-metrics.js'
import { READING_METHODS, WRITE_METHODS } from './access.js'
import { GATEWAY_ERROR_CODES, type GatewayErrorCode } from './errors.js'
import type { RequestOutcome } from './http/open-replies.js'
import { EXCHANGE_RESULTS, type ExchangeResultKind } from './oidc/exchange-result.js'
import type { BackendMetrics } from './proxy/backend-pool.js'

/** Values that other parts maintain, read when the metrics are scraped. */
export interface GatewayMetricSources {
  readonly loginKeys: () => number
  /** Requests that wait for each backend, by the name of its row; one entry if there are no rows. */
  readonly inFlight: Readonly<Record<string, () => number>>
  readonly auditFallback: () => boolean
  readonly auditDropped: () => number
}

// The last bound is the default of BACKEND_TIMEOUT_MS.
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

// Labels come from closed sets, so that clients cannot create new series.
const METHODS: ReadonlySet<string> = new Set([...READING_METHODS, ...WRITE_METHODS])
const OTHER_METHOD = 'OTHER'
/** Values of the status label. The index of a status class is its first digit. */
const OUTCOMES = ['cut', 'other', '2xx', '3xx', '4xx', '5xx'] as const
const [CUT, OTHER_STATUS] = [0, 1]

const OTHER_BACKEND_ERROR = 'OTHER'
const BACKEND_ERROR_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_SOCKET',
  OTHER_BACKEND_ERROR
])

/** The series of one route and method. Children are resolved once, not per request. */
interface RequestSeries {
  readonly duration: Histogram.Internal<'route' | 'method'>
  /** By index in `OUTCOMES`. */
  readonly counts: readonly Counter.Internal[]
}

/** The label of metrics of backends. Only gateways with several backends have it. */
const UPSTREAM = 'upstream'

/** The metrics of one gateway, in their own registry. */
export class GatewayMetrics {
  readonly #registry = new Registry()
  readonly #requests: Counter<'route' | 'method' | 'status'>
  readonly #durations: Histogram<'route' | 'method'>
  readonly #backendDurations: Histogram
  readonly #backendErrors: Counter
  readonly #upstreams: readonly string[]
  readonly #rejections: Counter<'code'>
  readonly #exchanges: Counter<'result'>
  // Nested maps need no new key string for each request.
  readonly #byRoute = new Map<string, Map<string, RequestSeries>>()

  constructor(sources: GatewayMetricSources) {
    const registers = [this.#registry]
    this.#upstreams = Object.keys(sources.inFlight)
    const upstreamLabel = this.#upstreams.length > 1 ? [UPSTREAM] : []
    this.#requests = new Counter({
      name: 'gateway_http_requests_total',
      help: 'Requests by route, method and status class.',
      labelNames: ['route', 'method', 'status'],
      registers
    })
    this.#durations = new Histogram({
      name: 'gateway_http_request_duration_seconds',
      help: 'Time until the response was complete or cut off.',
      labelNames: ['route', 'method'],
      buckets: DURATION_BUCKETS,
      registers
    })
    this.#backendDurations = new Histogram({
      name: 'gateway_backend_duration_seconds',
      help: "Time until the first byte of the backend's response.",
      labelNames: [...upstreamLabel, 'route'],
      buckets: DURATION_BUCKETS,
      registers
    })
    this.#backendErrors = new Counter({
      name: 'gateway_backend_errors_total',
      help: 'Requests without a complete response of the backend.',
      labelNames: [...upstreamLabel, 'code'],
      registers
    })
    // All series exist from the start: `increase` misses the first value of a new series.
    for (const upstream of this.#upstreams)
      for (const code of BACKEND_ERROR_CODES) this.#backendErrors.inc({ ...this.#upstreamLabels(upstream), code }, 0)
    this.#rejections = new Counter({
      name: 'gateway_refusals_total',
      help: 'Requests that the gateway rejected, by error code.',
      labelNames: ['code'],
      registers
    })
    for (const code of GATEWAY_ERROR_CODES) this.#rejections.inc({ code }, 0)
    this.#exchanges = new Counter({
      name: 'gateway_exchange_total',
      help: 'Exchanges of identity-provider sessions for app sessions, by result.',
      labelNames: ['result'],
      registers
    })
    for (const result of EXCHANGE_RESULTS) this.#exchanges.inc({ result }, 0)
    this.#readAtScrape(sources)
    collectProcessMetrics(this.#registry)
  }

  /** `route` is the template of a route, never a requested path. */
  requestEnded(route: string, method: string, { status, cutShort, ms }: RequestOutcome): void {
    const { duration, counts } = this.#series(route, METHODS.has(method) ? method : OTHER_METHOD)
    duration.observe(ms / 1000)
    counts[cutShort ? CUT : outcomeIndex(status)]?.inc()
  }

  /** The metrics of one backend, by the name of its row. */
  ofBackend(upstream: string): BackendMetrics {
    const labels = this.#upstreamLabels(upstream)
    const byRoute = new Map<string, Histogram.Internal<string>>()
    return {
      backendResponded: (route, seconds) => {
        let series = byRoute.get(route)
        if (series === undefined) {
          series = this.#backendDurations.labels({ ...labels, route })
          byRoute.set(route, series)
        }
        series.observe(seconds)
      },
      backendFailed: (error) => {
        const code = errorCode(error)
        this.#backendErrors.inc({ ...labels, code: BACKEND_ERROR_CODES.has(code) ? code : OTHER_BACKEND_ERROR })
      }
    }
  }

  rejected(code: GatewayErrorCode): void {
    this.#rejections.inc({ code })
  }

  exchanged(result: ExchangeResultKind): void {
    this.#exchanges.inc({ result })
  }

  /** Adds a value that is read when the metrics are scraped. */
  addGauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.set(read())
      }
    })
  }

  /** Adds a value for each backend, by the name of its row. */
  addUpstreamGauge(name: string, help: string, sources: Readonly<Record<string, () => number>>): void {
    new Gauge({
      name,
      help,
      labelNames: [UPSTREAM],
      registers: [this.#registry],
      collect() {
        for (const [upstream, read] of Object.entries(sources)) this.set({ [UPSTREAM]: upstream }, read())
      }
    })
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** All metrics in the Prometheus text format. */
  text(): Promise<string> {
    return this.#registry.metrics()
  }

  #upstreamLabels(upstream: string): Readonly<Record<string, string>> {
    return this.#upstreams.length > 1 ? { [UPSTREAM]: upstream } : {}
  }

  #series(route: string, method: string): RequestSeries {
    const existing = this.#byRoute.get(route)?.get(method)
    if (existing !== undefined) return existing

    const counts = OUTCOMES.map((status) => this.#requests.labels({ route, method, status }))
    for (const count of counts) count.inc(0)
    const series: RequestSeries = { duration: this.#durations.labels({ route, method }), counts }
    const byMethod = this.#byRoute.get(route) ?? new Map<string, RequestSeries>()
    this.#byRoute.set(route, byMethod.set(method, series))
    return series
  }

  #readAtScrape(sources: GatewayMetricSources): void {
    const gauges: readonly (readonly [name: string, help: string, read: () => number])[] = [
      ['gateway_login_limit_keys', 'Addresses that the login limit counts at present.', sources.loginKeys],
      [
        'gateway_audit_fallback',
        '1 while the audit file cannot be written and records go to stderr.',
        () => Number(sources.auditFallback())
      ]
    ]
    for (const [name, help, read] of gauges) this.addGauge(name, help, read)
    const [inFlight] = Object.values(sources.inFlight)
    if (inFlight !== undefined && this.#upstreams.length === 1) this.addGauge(...IN_FLIGHT, inFlight)
    else this.addUpstreamGauge(...IN_FLIGHT, sources.inFlight)
    const registers = [this.#registry]
    new Counter({
      name: 'gateway_audit_dropped_total',
      help: 'Audit records that were lost.',
      registers,
      collect() {
        this.reset()
        this.inc(sources.auditDropped())
      }
    })
  }
}

const IN_FLIGHT = ['gateway_in_flight', 'Requests that wait for the backend.'] as const

const outcomeIndex = (status: number): number => {
  const hundreds = Math.trunc(status / 100)
  return hundreds >= 2 && hundreds < OUTCOMES.length ? hundreds : OTHER_STATUS
}
