import type { Logger } from 'pino'

// The part of OpenTelemetry that the programs use. `open-tracer.ts` opens the tracer.

/** Headers that may contain a W3C Trace Context: `traceparent` and `tracestate`. */
export type TraceHeaders = Readonly<Record<string, string | string[] | undefined>>

/** `server` and `consumer` handle what others have sent; `client` and `producer` send. */
export type SpanKind = 'server' | 'client' | 'producer' | 'consumer'

export type SpanAttributes = Readonly<Record<string, string | number>>

export interface SpanOptions {
  readonly kind: SpanKind
  readonly attributes: SpanAttributes
  /** In milliseconds since 1970; by default now. */
  readonly startedAt?: number
}

/** An operation that has been started. Calls after `end` have no effect. */
export interface Span {
  readonly traceId: string
  /** Whether it is exported. */
  readonly isSampled: boolean
  /** For requests and publications that belong to this span. */
  readonly traceparent: string
  /** `traceparent` and `tracestate` as alternating names and values. */
  readonly headers: readonly string[]
  startChild(name: string, options: SpanOptions): Span
  setAttributes(attributes: SpanAttributes): void
  rename(name: string): void
  /** `error` marks the span as failed: the type of the error, such as a status or a code. */
  end(error?: string): void
}

export interface Tracer {
  /** Continues the trace of the headers, or begins a new one. */
  startSpan(name: string, parent: TraceHeaders, options: SpanOptions): Span
  /** Exports the remaining spans. Takes a second at most and never rejects. */
  close(): Promise<void>
}

export interface TracedProgram {
  /** The service name, unless OTEL_SERVICE_NAME is set. */
  readonly serviceName: string
  readonly version: string
  readonly log: Pick<Logger, 'info' | 'warn'>
}

const TRACEPARENT = /^(?!ff)[\da-f]{2}-([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-|$)/
const NO_TRACE_ID = '0'.repeat(32)

/** The trace id of a `traceparent` header; null without a valid one. */
export const traceIdOf = (traceparent: string | readonly string[] | undefined): string | null => {
  if (typeof traceparent !== 'string') return null
  const traceId = TRACEPARENT.exec(traceparent)?.[1] ?? NO_TRACE_ID
  return traceId === NO_TRACE_ID ? null : traceId
}
