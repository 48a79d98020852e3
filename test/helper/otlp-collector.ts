import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import protobuf from 'protobufjs'
import { urlOf } from './address.js'
import type { Teardown } from './child.js'
import { eventually } from './eventually.js'
import { memberAt } from './member-at.js'
import { required } from './required.js'

// The part of the OpenTelemetry protocol that describes spans.
const PROTO = `
syntax = "proto3";
message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
message Resource { repeated KeyValue attributes = 1; }
message ScopeSpans { repeated Span spans = 2; }
message Span {
  bytes trace_id = 1;
  bytes span_id = 2;
  bytes parent_span_id = 4;
  string name = 5;
  int32 kind = 6;
  fixed64 start_time_unix_nano = 7;
  fixed64 end_time_unix_nano = 8;
  repeated KeyValue attributes = 9;
  Status status = 15;
}
message Status { int32 code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { oneof value { string string_value = 1; int64 int_value = 3; double double_value = 4; } }
`

const REQUEST = protobuf.parse(PROTO).root.lookupType('ExportTraceServiceRequest')
const KINDS = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer'] as const
const ERROR_STATUS = 2

export interface CollectedSpan {
  readonly service: string
  readonly name: string
  readonly kind: (typeof KINDS)[number]
  readonly traceId: string
  readonly spanId: string
  /** Empty for the first span of a trace. */
  readonly parentId: string
  readonly attributes: Readonly<Record<string, string | number>>
  readonly isError: boolean
  readonly durationMs: number
}

export interface OtlpCollector {
  readonly url: string
  readonly spans: CollectedSpan[]
  /** Headers of the last export. */
  readonly headers: IncomingHttpHeaders
  /** Waits for a span. */
  find(matches: (span: CollectedSpan) => boolean, label: string): Promise<CollectedSpan>
}

interface KeyValue {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: string; readonly doubleValue?: number }
}

/** An OTLP/HTTP receiver of traces. */
export const startCollector = async (t: Teardown): Promise<OtlpCollector> => {
  const spans: CollectedSpan[] = []
  let headers: IncomingHttpHeaders = {}
  const server = createServer(async (request, response) => {
    const body = await buffer(request)
    const isTraces = request.url === '/v1/traces' && request.headers['content-type'] === 'application/x-protobuf'
    if (isTraces) {
      headers = request.headers
      spans.push(...spansIn(request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body))
    }
    response.writeHead(isTraces ? 200 : 404, { 'content-type': 'application/x-protobuf' }).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: urlOf(server),
    spans,
    get headers() {
      return headers
    },
    find: async (matches, label) => {
      await eventually(() => spans.some(matches), { label: `span: ${label}` })
      return required(spans.find(matches))
    }
  }
}

const spansIn = (body: Buffer): CollectedSpan[] => {
  // The shape follows from the message definitions above.
  const { resourceSpans = [] } = REQUEST.toObject(REQUEST.decode(body), { longs: String, bytes: String }) as {
    resourceSpans?: {
      resource?: { attributes?: KeyValue[] }
      scopeSpans?: { spans?: Record<string, never>[] }[]
    }[]
  }
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) => {
    const service = String(attributesOf(resource?.attributes)['service.name'])
    return scopeSpans.flatMap(({ spans = [] }) => spans.map((span) => collected(service, span)))
  })
}

const collected = (service: string, span: Record<string, never>): CollectedSpan => {
  const { traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, attributes, status } = span
  return {
    service,
    name: String(name),
    kind: KINDS[Number(kind ?? 0)] ?? 'unspecified',
    traceId: hex(traceId),
    spanId: hex(spanId),
    parentId: hex(parentSpanId),
    attributes: attributesOf(attributes),
    isError: memberAt(status, ['code']) === ERROR_STATUS,
    durationMs: (Number(endTimeUnixNano) - Number(startTimeUnixNano)) / 1e6
  }
}

/** `toObject` encodes bytes in base64. */
const hex = (base64: string | undefined): string => Buffer.from(base64 ?? '', 'base64').toString('hex')

const attributesOf = (list: readonly KeyValue[] = []): Record<string, string | number> =>
  Object.fromEntries(
    list.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue ?? value.doubleValue)])
  )
