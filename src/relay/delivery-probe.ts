import { randomUUID } from 'node:crypto'
import { messageOf } from '../shared/error-message.js'
import type { Log } from '../shared/log.js'
import type { Broker, Engine, ProbeChannel } from './core/engine.js'
import type { HistoryOptions } from './core/options.js'
import { PLAIN_PUBLICATION } from './core/publish/publish.js'
import type { Relay } from './core/relay.js'
import type { ProbeStep } from './metrics/known-series.js'
import type { RelayMetrics } from './metrics/relay-metrics.js'
import { type HttpHandler, JSON_TYPE, respond } from './transport/respond.js'

export interface ProbeResult {
  /** Null if the publications of all servers were delivered. */
  readonly failedStep: ProbeStep | null
  /** Time of the whole probe, or until it was given up. */
  readonly durationMs: number
}

interface ProbeFailure {
  readonly step: ProbeStep
  readonly server: string | null
  readonly cause: string
}

export interface DeliveryProbeDependencies {
  readonly relay: Pick<Relay, 'observeInternal'>
  readonly engine: Pick<Engine, 'isReady' | 'probeChannels'> & {
    readonly broker: Pick<Broker, 'subscribe' | 'unsubscribe' | 'publish'>
  }
  readonly metrics: Pick<RelayMetrics, 'deliveryProbed' | 'deliveryProbeFailed'>
  readonly log: Log
  readonly timings: ProbeTimings
}

export interface ProbeTimings {
  /** Less than the 5 s within which the route responds. */
  readonly timeoutMs: number
  readonly intervalMs: number
}

export const PROBE_TIMINGS: ProbeTimings = { timeoutMs: 4_000, intervalMs: 10_000 }

/** With history, so that a probe writes to the engine like an ordinary publication. */
const HISTORY: HistoryOptions = { historySize: 1, historyTtlMs: 60_000, historyMetaTtlMs: 60_000 }

/**
 * Publishes to an internal channel on each server of the engine and waits until this process receives the publication. Runs at
 * intervals and on request; requests during a probe share its result.
 */
export class DeliveryProbe {
  readonly #dependencies: DeliveryProbeDependencies
  /** Random, so that no client or publisher uses the same channel. */
  readonly #name = `delivery-probe-${randomUUID()}`
  readonly #subscribed = new Set<string>()
  readonly #timer: NodeJS.Timeout
  #running: Promise<ProbeResult> | null = null
  #hasFailed = false

  constructor(dependencies: DeliveryProbeDependencies) {
    this.#dependencies = dependencies
    this.#timer = setInterval(() => void this.run(), dependencies.timings.intervalMs).unref()
  }

  /** Resolves within the timeout and never rejects. */
  run(): Promise<ProbeResult> {
    this.#running ??= this.#run().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  close(): void {
    clearInterval(this.#timer)
    this.#unsubscribeExcept([])
  }

  async #run(): Promise<ProbeResult> {
    const { engine, metrics } = this.#dependencies
    const startedAt = performance.now()
    const channels = engine.probeChannels(this.#name)
    this.#unsubscribeExcept(channels.map(({ channel }) => channel))
    const failures = await Promise.all(channels.map((channel) => this.#probe(channel)))
    const durationMs = Math.round((performance.now() - startedAt) * 1000) / 1000
    const failure = failures.find((each) => each !== null) ?? this.#engineFailure(channels)
    this.#report(failure)
    if (failure === null) metrics.deliveryProbed(durationMs / 1000)
    else metrics.deliveryProbeFailed(failure.step)
    return { failedStep: failure?.step ?? null, durationMs }
  }

  /** For example hash slots without a server, or no server at all. */
  #engineFailure(channels: readonly ProbeChannel[]): ProbeFailure | null {
    if (this.#dependencies.engine.isReady && channels.length > 0) return null
    return { step: 'engine', server: null, cause: 'the engine is not ready' }
  }

  async #probe({ channel, server }: ProbeChannel): Promise<ProbeFailure | null> {
    const { relay, engine } = this.#dependencies
    let step: ProbeStep = 'subscribe'
    const failure = (cause: string): ProbeFailure => ({ step, server, cause })
    const attempt = async (): Promise<void> => {
      // Does nothing if the subscription of an earlier probe still exists.
      await engine.broker.subscribe(channel)
      step = 'publish'
      const data = JSON.stringify(randomUUID())
      const delivered = new Promise<void>((resolve) => {
        relay.observeInternal(channel, (publication) => {
          if (publication.data === data) resolve()
        })
      })
      await engine.broker.publish(channel, { ...PLAIN_PUBLICATION, data }, HISTORY)
      step = 'delivery'
      await delivered
    }
    this.#subscribed.add(channel)
    const { timeoutMs } = this.#dependencies.timings
    let timer: NodeJS.Timeout | undefined
    const timedOut = new Promise<ProbeFailure>((resolve) => {
      timer = setTimeout(() => resolve(failure(`no result within ${timeoutMs} ms`)), timeoutMs).unref()
    })
    const result = attempt().then(
      () => null,
      (error) => failure(messageOf(error))
    )
    try {
      return await Promise.race([result, timedOut])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Channels change when hash slots move to other servers. */
  #unsubscribeExcept(channels: readonly string[]): void {
    const { relay, engine } = this.#dependencies
    for (const channel of this.#subscribed) {
      if (channels.includes(channel)) continue
      this.#subscribed.delete(channel)
      relay.observeInternal(channel, null)
      engine.broker.unsubscribe(channel).catch(() => undefined)
    }
  }

  /** Logs the first failure and the recovery, not every probe in between. */
  #report(failure: ProbeFailure | null): void {
    const { log } = this.#dependencies
    if (failure !== null && !this.#hasFailed) log.error(failure, 'delivery probe failed')
    if (failure === null && this.#hasFailed) log.info({}, 'delivery probe succeeded again')
    this.#hasFailed = failure !== null
  }
}

/** 200 with the duration in milliseconds, or 503 with the step that failed. */
export const deliveryRoute =
  (probe: DeliveryProbe): HttpHandler =>
  (request, response) => {
    request.resume()
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      respond(response, 405, '', ['Allow', 'GET, HEAD'])
      return
    }
    void probe.run().then(({ failedStep, durationMs }) => {
      const body =
        failedStep === null ? { status: 'ok', durationMs } : { status: 'unavailable', step: failedStep, durationMs }
      const headers = [...JSON_TYPE, 'Cache-Control', 'no-store']
      respond(response, failedStep === null ? 200 : 503, JSON.stringify(body), headers)
    })
  }
