import type { Span, SpanAttributes, SpanKind, SpanOptions, Tracer } from '../../src/shared/tracing.js'

export interface RecordedSpan {
  name: string
  readonly kind: SpanKind
  /** Null for the span of a request. */
  readonly parent: RecordedSpan | null
  attributes: SpanAttributes
  readonly traceparent: string
  isEnded: boolean
  error: string | undefined
}

/** A tracer that keeps its spans, in the order of their start. */
export class RecordingTracer implements Tracer {
  readonly spans: RecordedSpan[] = []

  startSpan(name: string, _parent: unknown, options: SpanOptions): Span {
    return this.#start(name, null, options)
  }

  async close(): Promise<void> {}

  #start(name: string, parent: RecordedSpan | null, { kind, attributes }: SpanOptions): Span {
    const traceId = '0af7651916cd43dd8448eb211c80319c'
    const traceparent = `00-${traceId}-${String(this.spans.length + 1).padStart(16, '0')}-01`
    const span: RecordedSpan = { name, kind, parent, attributes, traceparent, isEnded: false, error: undefined }
    this.spans.push(span)
    return {
      traceId,
      isSampled: true,
      traceparent,
      headers: ['traceparent', traceparent],
      startChild: (child, options) => this.#start(child, span, options),
      setAttributes: (more) => {
        span.attributes = { ...span.attributes, ...more }
      },
      rename: (to) => {
        span.name = to
      },
      end: (error) => {
        span.isEnded = true
        span.error = error
      }
    }
  }
}
