import type { IncomingMessage, ServerResponse } from 'node:http'
import { sameSecret } from '../../shared/same-secret.js'
import type { RelayConfig } from '../config.js'
import { ReplyError } from '../core/errors.js'
import { after } from '../core/maybe-promise.js'
import type { ApiCalls, ApiReply } from './api-calls.js'
import { bareErrorJson, errorJson, statusOf } from './api-reply.js'
import { answer, JSON_TYPE, readBody, TEXT_TYPE } from './http-answer.js'

/** `POST /api/<method>` with a request, or `POST /api`, where the method is '', with commands that name theirs. */
export type PublishApi = (request: IncomingMessage, response: ServerResponse, method: string) => void

export interface PublishApiParts {
  readonly calls: ApiCalls
  readonly config: () => RelayConfig['api']
  readonly isLeaving: () => boolean
  /** Somebody without the right key wanted to publish. */
  readonly refused: (request: IncomingMessage) => void
}

export const publishApi =
  ({ calls, config, isLeaving, refused }: PublishApiParts): PublishApi =>
  (request, response, method) => {
    const { key, previousKey, insecure, maxBodyBytes, errorMode } = config()
    if (!insecure && !hasKey(request, key, previousKey)) {
      request.resume()
      refused(request)
      // Nobody unknown keeps a connection, or sends a body to its end.
      answer(response, 401, '', ['Connection', 'close'])
      return
    }
    if (request.method !== 'POST') {
      request.resume()
      answer(response, 405, '', ['Allow', 'POST'])
      return
    }
    const asStatus = (request.headers['x-centrifugo-error-mode'] ?? errorMode) === 'transport'
    readBody(request, response, maxBodyBytes, (body) => {
      if (isLeaving() && method === '') {
        answer(response, 503)
        return
      }
      // An answer comes before the fan-out, which begins when this turn of the event loop ends.
      void after(method === '' ? calls.many(body) : calls.one(method, body), (reply) =>
        write(response, reply, asStatus)
      )
    })
  }

const write = (response: ServerResponse, reply: ApiReply, asStatus: boolean): void => {
  if (reply === null) answer(response, 400, 'the body is not JSON\n', TEXT_TYPE)
  else if (!(reply instanceof ReplyError)) answer(response, 200, reply, JSON_TYPE)
  else if (asStatus) answer(response, statusOf(reply), bareErrorJson(reply), JSON_TYPE)
  else answer(response, 200, errorJson(reply), JSON_TYPE)
}

/** The header where it is there, else the other spellings of old publishers. */
const hasKey = ({ headers, url = '' }: IncomingMessage, key: string, previousKey: string | null): boolean => {
  if (key === '') return false
  const given = headers['x-api-key'] ?? apiKeyOf(headers.authorization) ?? queryKey(url)
  if (typeof given !== 'string') return false
  return sameSecret(given, key) || (previousKey !== null && sameSecret(given, previousKey))
}

const apiKeyOf = (authorization: string | undefined): string | undefined =>
  /^apikey +(.*)$/i.exec(authorization ?? '')?.[1]

const queryKey = (url: string): string | undefined => {
  const query = url.indexOf('?')
  return query === -1 ? undefined : (new URLSearchParams(url.slice(query + 1)).get('api_key') ?? undefined)
}
