import type { IncomingMessage, ServerResponse } from 'node:http'
import { sameSecret } from '../../shared/same-secret.js'
import type { RelayConfig } from '../config.js'
import { INTERNAL, ReplyError } from '../core/errors.js'
import type { MaybePromise } from '../core/maybe-promise.js'
import type { ApiCalls, ApiReply } from './api-calls.js'
import { bareErrorJson, errorJson, statusOf } from './api-reply.js'
import { answer, JSON_TYPE, readBody, TEXT_TYPE } from './http-answer.js'
import { answerLong } from './long-answer.js'

/** `POST /api/<method>` with a request, or `POST /api`, where the method is '', with commands that name theirs. */
export type PublishApi = (request: IncomingMessage, response: ServerResponse, method: string) => void

export interface PublishApiParts {
  readonly calls: ApiCalls
  readonly config: () => RelayConfig['api']
  readonly isLeaving: () => boolean
  /** A request came without the right key. */
  readonly refused: (reason: 'missing' | 'wrong', request: IncomingMessage) => void
  /** A request failed that should not; the process goes on. */
  readonly failed: (error: unknown) => void
}

export const publishApi =
  ({ calls, config, isLeaving, refused, failed }: PublishApiParts): PublishApi =>
  (request, response, method) => {
    const { key, previousKey, insecure, maxBodyBytes, errorMode } = config()
    const fault = insecure ? null : keyFault(request, key, previousKey)
    if (fault !== null) {
      request.resume()
      refused(fault, request)
      // Nobody unknown keeps a connection, or sends a body to its end.
      answer(response, 401, '', ['Connection', 'close'])
      return
    }
    if (request.method !== 'POST') {
      request.resume()
      answer(response, 405, '', ['Allow', 'POST'])
      return
    }
    if (isLeaving()) {
      request.resume()
      answer(response, 503, '', ['Connection', 'close'])
      return
    }
    const asStatus = (request.headers['x-centrifugo-error-mode'] ?? errorMode) === 'transport'
    readBody(request, response, maxBodyBytes, (body) => {
      // Answered already, because the relay shut down while the body was on its way.
      if (response.headersSent) return
      void respond(response, asStatus, () => (method === '' ? calls.many(body) : calls.one(method, body)), failed)
    })
  }

/** An answer comes before the fan-out, which begins when this turn of the event loop ends. */
const respond = async (
  response: ServerResponse,
  asStatus: boolean,
  run: () => MaybePromise<ApiReply>,
  failed: (error: unknown) => void
): Promise<void> => {
  try {
    const reply = run()
    const written = write(response, reply instanceof Promise ? await reply : reply, asStatus)
    if (written !== undefined) await written
  } catch (error) {
    failed(error)
    if (response.headersSent) response.destroy()
    else refuse(response, INTERNAL, asStatus)
  }
}

const write = (response: ServerResponse, reply: ApiReply, asStatus: boolean): MaybePromise<void> => {
  if (reply === null) answer(response, 400, 'the body is not JSON\n', TEXT_TYPE)
  else if (reply instanceof ReplyError) refuse(response, reply, asStatus)
  else return answerLong(response, 200, reply, JSON_TYPE)
}

const refuse = (response: ServerResponse, error: ReplyError, asStatus: boolean): void => {
  if (asStatus) answer(response, statusOf(error), bareErrorJson(error), JSON_TYPE)
  else answer(response, 200, errorJson(error), JSON_TYPE)
}

/** The header where it is there, else the other spellings of old publishers. Null for a right key. */
const keyFault = (
  { headers, url = '' }: IncomingMessage,
  key: string,
  previousKey: string | null
): 'missing' | 'wrong' | null => {
  const given = headers['x-api-key'] ?? apiKeyOf(headers.authorization) ?? queryKey(url)
  if (typeof given !== 'string' || given === '') return 'missing'
  if (key === '') return 'wrong'
  return sameSecret(given, key) || (previousKey !== null && sameSecret(given, previousKey)) ? null : 'wrong'
}

const apiKeyOf = (authorization: string | undefined): string | undefined =>
  /^apikey +(.*)$/i.exec(authorization ?? '')?.[1]

const queryKey = (url: string): string | undefined => {
  const query = url.indexOf('?')
  return query === -1 ? undefined : (new URLSearchParams(url.slice(query + 1)).get('api_key') ?? undefined)
}
