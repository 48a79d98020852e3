import type { Logger } from 'pino'
import packageFile from '../../package.json' with { type: 'json' }
import { type Environment, SettingsError } from './env.js'
import { errorCode } from './error-code.js'

// The part of OpenTelemetry that the programs use. The packages are loaded only if tracing is enabled.

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

const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT'
const TRACES_ENDPOINT = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
const PROTOCOL = 'OTEL_EXPORTER_OTLP_PROTOCOL'
const TRACES_PROTOCOL = 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'
const SUPPORTED_PROTOCOL = 'http/protobuf'

/**
 * The tracer, or null if tracing is disabled. The SDK reads all other `OTEL_…` variables itself. Throws `SettingsError` if a
 * setting is invalid or the packages are not installed.
 */
export const openTracer = async (environment: Environment, program: TracedProgram): Promise<Tracer | null> => {
  if (!isEnabled(environment)) return null
  checkSettings(environment)
  try {
    const { OpenTelemetryTracer } = await import('./open-telemetry.js')
    return new OpenTelemetryTracer(program)
  } catch (error) {
    if (errorCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new SettingsError([`${ENDPOINT} needs the OpenTelemetry packages: ${INSTALL_OPEN_TELEMETRY}`])
  }
}

/** In the npm package these are optional peer dependencies. */
export const INSTALL_OPEN_TELEMETRY = `npm install ${Object.entries(packageFile.optionalDependencies)
  .map(([name, version]) => `${name}@${version}`)
  .join(' ')}`

const isEnabled = (environment: Environment): boolean => {
  const hasEndpoint = [ENDPOINT, TRACES_ENDPOINT].some((name) => (environment[name] ?? '') !== '')
  const isDisabled = environment.OTEL_SDK_DISABLED?.toLowerCase() === 'true'
  return hasEndpoint && !isDisabled && environment.OTEL_TRACES_EXPORTER !== 'none'
}

const checkSettings = (environment: Environment): void => {
  const errors: string[] = []
  for (const name of [ENDPOINT, TRACES_ENDPOINT]) {
    const value = environment[name] ?? ''
    if (value !== '' && !isHttpUrl(value)) errors.push(`${name} must be an http or https URL`)
  }
  for (const name of [PROTOCOL, TRACES_PROTOCOL]) {
    const value = environment[name] ?? ''
    if (value !== '' && value !== SUPPORTED_PROTOCOL) errors.push(`${name} must be ${SUPPORTED_PROTOCOL}`)
  }
  if (errors.length > 0) throw new SettingsError(errors)
}

const isHttpUrl = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

const TRACEPARENT = /^(?!ff)[\da-f]{2}-([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-|$)/
const NO_TRACE_ID = '0'.repeat(32)

/** The trace id of a `traceparent` header; null without a valid one. */
export const traceIdOf = (traceparent: string | readonly string[] | undefined): string | null => {
  if (typeof traceparent !== 'string') return null
  const traceId = TRACEPARENT.exec(traceparent)?.[1] ?? NO_TRACE_ID
  return traceId === NO_TRACE_ID ? null : traceId
}
