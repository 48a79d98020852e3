import { setTimeout as delay } from 'node:timers/promises'
import {
  type Context,
  DiagLogLevel,
  defaultTextMapGetter,
  defaultTextMapSetter,
  diag,
  type Tracer as OpenTelemetryApiTracer,
  type Span as OpenTelemetrySpan,
  SpanKind as OpenTelemetrySpanKind,
  ROOT_CONTEXT,
  SpanStatusCode,
  TraceFlags,
  trace
} from '@opentelemetry/api'
import {
  type ExportResult,
  ExportResultCode,
  setGlobalErrorHandler,
  W3CTraceContextPropagator
} from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter
} from '@opentelemetry/sdk-trace-base'
import type { Span, SpanAttributes, SpanKind, SpanOptions, TracedProgram, TraceHeaders, Tracer } from './tracing.js'

const CLOSE_MS = 1000

const KINDS: Readonly<Record<SpanKind, OpenTelemetrySpanKind>> = {
  server: OpenTelemetrySpanKind.SERVER,
  client: OpenTelemetrySpanKind.CLIENT,
  producer: OpenTelemetrySpanKind.PRODUCER,
  consumer: OpenTelemetrySpanKind.CONSUMER
}

const propagator = new W3CTraceContextPropagator()

/** Sends spans to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names, in batches and in the background. */
export class OpenTelemetryTracer implements Tracer {
  readonly #provider: BasicTracerProvider
  readonly #tracer: OpenTelemetryApiTracer

  constructor({ serviceName, version, log }: TracedProgram) {
    const warn = (detail: string): void => log.warn({ cause: detail }, 'OpenTelemetry warning')
    const ignore = (): void => undefined
    diag.setLogger({ error: warn, warn, info: ignore, debug: ignore, verbose: ignore }, DiagLogLevel.WARN)
    // `ReportingExporter` reports failed exports, once for a series of them.
    setGlobalErrorHandler(ignore)
    const program = resourceFromAttributes({ 'service.name': serviceName, 'service.version': version })
    this.#provider = new BasicTracerProvider({
      resource: defaultResource()
        .merge(program)
        .merge(detectResources({ detectors: [envDetector] })),
      spanProcessors: [new BatchSpanProcessor(new ReportingExporter(new OTLPTraceExporter(), log))]
    })
    this.#tracer = this.#provider.getTracer('gatehouse', version)
  }

  startSpan(name: string, parent: TraceHeaders, options: SpanOptions): Span {
    return startSpan(this.#tracer, name, propagator.extract(ROOT_CONTEXT, parent, defaultTextMapGetter), options)
  }

  async close(): Promise<void> {
    const closed = this.#provider.shutdown().catch(() => undefined)
    await Promise.race([closed, delay(CLOSE_MS, undefined, { ref: false })])
  }
}

const startSpan = (
  tracer: OpenTelemetryApiTracer,
  name: string,
  parent: Context,
  { kind, attributes, startedAt }: SpanOptions
): Span => {
  const options = {
    kind: KINDS[kind],
    attributes: { ...attributes },
    ...(startedAt !== undefined && { startTime: startedAt })
  }
  const span = tracer.startSpan(name, options, parent)
  return new TracedOperation(tracer, span, trace.setSpan(parent, span))
}

class TracedOperation implements Span {
  readonly #tracer: OpenTelemetryApiTracer
  readonly #span: OpenTelemetrySpan
  readonly #context: Context

  constructor(tracer: OpenTelemetryApiTracer, span: OpenTelemetrySpan, context: Context) {
    this.#tracer = tracer
    this.#span = span
    this.#context = context
  }

  get traceId(): string {
    return this.#span.spanContext().traceId
  }

  get isSampled(): boolean {
    return (this.#span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0
  }

  get traceparent(): string {
    return this.#carrier().traceparent ?? ''
  }

  get headers(): readonly string[] {
    return Object.entries(this.#carrier()).flat()
  }

  startChild(name: string, options: SpanOptions): Span {
    return startSpan(this.#tracer, name, this.#context, options)
  }

  setAttributes(attributes: SpanAttributes): void {
    this.#span.setAttributes({ ...attributes })
  }

  rename(name: string): void {
    this.#span.updateName(name)
  }

  end(error?: string): void {
    if (error !== undefined) {
      this.#span.setAttribute('error.type', error)
      this.#span.setStatus({ code: SpanStatusCode.ERROR })
    }
    this.#span.end()
  }

  #carrier(): Record<string, string> {
    const carrier: Record<string, string> = {}
    propagator.inject(this.#context, carrier, defaultTextMapSetter)
    return carrier
  }
}

/** Logs the first failed export and the first successful one after it. Spans of failed exports are dropped. */
class ReportingExporter implements SpanExporter {
  readonly #exporter: SpanExporter
  readonly #log: TracedProgram['log']
  #hasFailed = false

  constructor(exporter: SpanExporter, log: TracedProgram['log']) {
    this.#exporter = exporter
    this.#log = log
  }

  export(spans: ReadableSpan[], resultCallback: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      this.#report(result, spans.length)
      resultCallback(result)
    })
  }

  forceFlush(): Promise<void> {
    return this.#exporter.forceFlush?.() ?? Promise.resolve()
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown()
  }

  #report({ code, error }: ExportResult, spans: number): void {
    const isFailed = code !== ExportResultCode.SUCCESS
    if (isFailed && !this.#hasFailed) this.#log.warn({ cause: error?.message ?? '', spans }, 'trace export failed')
    if (!isFailed && this.#hasFailed) this.#log.info({}, 'trace export restored')
    this.#hasFailed = isFailed
  }
}
