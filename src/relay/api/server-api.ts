import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { sameSecret } from '../../shared/same-secret.js'
import { type Span, type Tracer, traceIdOf } from '../../shared/tracing.js'
import type { RelayConfig } from '../config/config.js'
import { ERROR_INTERNAL, httpStatusOf, ReplyError } from '../core/codes.js'
import type { MaybePromise } from '../core/maybe-promise.js'
import { MalformedRequest } from '../json-fields.js'
import { type HttpHandler, JSON_TYPE, readBody, respond, respondLong, TEXT_TYPE } from '../transport/respond.js'
import type { Routes } from '../transport/server.js'
import type { ApiDispatcher, ApiReply } from './dispatcher.js'
import { API_METHODS } from './methods.js'
import { bareErrorJson, errorJson } from './reply.js'

export interface ServerApiDependencies {
  readonly dispatcher: ApiDispatcher
  readonly config: () => RelayConfig['api']
  readonly isDraining: () => boolean
  /** Called for a request without a valid API key. */
  readonly keyRejected: (reason: KeyError, request: IncomingMessage) => void
  /** Called for an unexpected error, which fails only its own request. */
  readonly failed: (error: unknown, traceId: string | null) => void
  /** Null if tracing is disabled. */
  readonly tracer: Tracer | null
}

export type KeyError = 'missing' | 'wrong'

const API_PREFIX = '/api/'
const UNKNOWN_METHOD = `${API_PREFIX}*`
const PATHS: ReadonlySet<string> = new Set([
  '/api',
  ...['batch', ...Object.keys(API_METHODS)].map((method) => `${API_PREFIX}${method}`)
])

/** Each method has a route of its own, so that metrics count its requests. */
export const apiRoutes = (handler: HttpHandler): Routes =>
  Object.fromEntries([...PATHS, UNKNOWN_METHOD].map((path) => [path, handler]))

/** `POST /api/<method>` with the request of one method, or `POST /api` with commands that name their method. */
export const serverApi = ({
  dispatcher,
  config,
  isDraining,
  keyRejected,
  failed,
  tracer
}: ServerApiDependencies): HttpHandler => {
  const run = (path: string, body: Buffer, span: Span | null): MaybePromise<ApiReply> =>
    path.startsWith(API_PREFIX)
      ? dispatcher.runMethod(path.slice(API_PREFIX.length), body, span)
      : dispatcher.runCommands(body, span)

  /** The reply is written before the fan-out, which starts at the end of this turn of the event loop. */
  const respondTo = async (path: string, body: Buffer, response: ServerResponse, asStatus: boolean): Promise<void> => {
    const { headers } = response.req
    const span = tracer === null ? null : startRequestSpan(tracer, path, headers)
    try {
      const replied = run(path, body, span)
      const reply = replied instanceof Promise ? await replied : replied
      await writeReply(response, reply, asStatus)
      endRequestSpan(span, response, reply)
    } catch (error) {
      failed(error, span?.traceId ?? traceIdOf(headers.traceparent))
      if (response.headersSent) response.destroy()
      else writeError(response, ERROR_INTERNAL, asStatus)
      span?.end('internal')
    }
  }

  return (request, response, path) => {
    const { key, previousKey, insecure, maxBodyBytes, errorMode } = config()
    const keyError = insecure ? null : checkKey(request, key, previousKey)
    if (keyError !== null) {
      request.resume()
      keyRejected(keyError, request)
      // A client without the key must not hold a connection or upload a body.
      respond(response, 401, '', ['Connection', 'close'])
      return
    }
    if (request.method !== 'POST') {
      request.resume()
      respond(response, 405, '', ['Allow', 'POST'])
      return
    }
    if (!PATHS.has(path)) {
      request.resume()
      respond(response, 404, 'there is no such method\n', TEXT_TYPE)
      return
    }
    if (isDraining()) {
      request.resume()
      respond(response, 503, '', ['Connection', 'close'])
      return
    }
    const asStatus = errorMode === 'transport' || request.headers['x-centrifugo-error-mode'] === 'transport'
    readBody(request, response, maxBodyBytes, (body) => {
      // The relay may have responded with 503 because it shut down before the body was complete.
      if (!response.headersSent) void respondTo(path, body, response, asStatus)
    })
  }
}

/** The path of an unknown method is not used: it can be any text. */
const startRequestSpan = (tracer: Tracer, path: string, headers: IncomingHttpHeaders): Span => {
  const route = PATHS.has(path) ? path : UNKNOWN_METHOD
  return tracer.startSpan(`POST ${route}`, headers, {
    kind: 'server',
    attributes: { 'http.request.method': 'POST', 'http.route': route }
  })
}

/** Errors of single commands in a batch are errors of their own spans only. */
const endRequestSpan = (span: Span | null, { statusCode }: ServerResponse, reply: ApiReply): void => {
  if (span === null) return
  span.setAttributes({ 'http.response.status_code': statusCode })
  if (reply instanceof ReplyError) span.end(String(reply.code))
  else span.end()
}

const writeReply = (response: ServerResponse, reply: ApiReply, asStatus: boolean): MaybePromise<void> => {
  if (reply === null) respond(response, 400, 'the body is not JSON\n', TEXT_TYPE)
  else if (reply instanceof MalformedRequest) respond(response, 400, `${reply.problem}\n`, TEXT_TYPE)
  else if (reply instanceof ReplyError) writeError(response, reply, asStatus)
  else return respondLong(response, 200, reply, JSON_TYPE)
}

const writeError = (response: ServerResponse, error: ReplyError, asStatus: boolean): void => {
  if (asStatus) respond(response, httpStatusOf(error), bareErrorJson(error), JSON_TYPE)
  else respond(response, 200, errorJson(error), JSON_TYPE)
}

/** The key comes from `X-API-Key`, else from the `Authorization` header or the query, as in older Centrifugo versions. */
const checkKey = ({ headers, url = '' }: IncomingMessage, key: string, previousKey: string | null): KeyError | null => {
  const given = headers['x-api-key'] ?? authorizationKey(headers.authorization) ?? queryKey(url)
  if (typeof given !== 'string' || given === '') return 'missing'
  if (key === '') return 'wrong'
  return sameSecret(given, key) || (previousKey !== null && sameSecret(given, previousKey)) ? null : 'wrong'
}

const authorizationKey = (authorization: string | undefined): string | undefined =>
  /^apikey +(.*)$/i.exec(authorization ?? '')?.[1]

const queryKey = (url: string): string | undefined => {
  const query = url.indexOf('?')
  return query === -1 ? undefined : (new URLSearchParams(url.slice(query + 1)).get('api_key') ?? undefined)
}
