import type { IncomingMessage, ServerResponse } from 'node:http'
import { sameSecret } from '../../shared/same-secret.js'
import type { RelayConfig } from '../config.js'
import type { Log } from '../core/context.js'
import { INTERNAL, ReplyError } from '../core/errors.js'
import { entryTexts, fieldText, valueTexts } from '../core/json-text.js'
import { after, type MaybePromise } from '../core/maybe-promise.js'
import type { Relay } from '../core/relay.js'
import { isObject } from '../core/requests.js'
import { API_METHODS, type ApiMethodName, NOT_FOUND, NUMBERED_METHODS } from './api-methods.js'
import { bareErrorJson, errorJson, resultJson, statusOf } from './api-reply.js'
import { ApiRequest, BadField } from './api-request.js'
import { answer, JSON_TYPE, readBody, TEXT_TYPE } from './http-answer.js'

export interface ApiParts {
  readonly relay: Relay
  readonly config: () => RelayConfig['api']
  readonly isLeaving: () => boolean
  readonly log: Log
}

/** `POST /api/<method>` with a request, or `POST /api` with commands that name their method. */
export const publishApi =
  ({ relay, config, isLeaving, log }: ApiParts) =>
  (request: IncomingMessage, response: ServerResponse, method: string): void => {
    const { key, insecure, maxBodyBytes, errorMode } = config()
    if (!insecure && !hasKey(request, key)) {
      answer(response, 401)
      request.resume()
      return
    }
    if (request.method !== 'POST') {
      answer(response, 405, '', ['Allow', 'POST'])
      request.resume()
      return
    }
    const asStatus = (request.headers['x-centrifugo-error-mode'] ?? errorMode) === 'transport'
    readBody(request, response, maxBodyBytes, (bytes) => {
      const body = bytes.toString()
      const run = method === '' ? runCommands : runMethod
      try {
        if (isLeaving() && method === '') {
          answer(response, 503)
          return
        }
        const replied = after(run(relay, method, body, log), (reply) => write(response, reply, asStatus))
        if (replied instanceof Promise) replied.catch((error) => fail(response, error, asStatus, log))
      } catch (error) {
        fail(response, error, asStatus, log)
      }
    })
  }

/** JSON text of the answer; an error apart, because its status may differ; null for a body that is no JSON. */
type ApiReply = string | ReplyError | null

const write = (response: ServerResponse, reply: ApiReply, asStatus: boolean): void => {
  if (reply === null) answer(response, 400, 'the body is not JSON\n', TEXT_TYPE)
  else if (!(reply instanceof ReplyError)) answer(response, 200, reply, JSON_TYPE)
  else if (asStatus) answer(response, statusOf(reply), bareErrorJson(reply), JSON_TYPE)
  else answer(response, 200, errorJson(reply), JSON_TYPE)
}

const fail = (response: ServerResponse, error: unknown, asStatus: boolean, log: Log): void => {
  log.error({ err: error }, 'an API call failed')
  if (!response.headersSent) write(response, INTERNAL, asStatus)
}

/** The header where it is there, else the other spellings of old publishers. */
const hasKey = ({ headers, url = '' }: IncomingMessage, key: string): boolean => {
  if (key === '') return false
  const given = headers['x-api-key'] ?? apiKeyOf(headers.authorization) ?? queryKey(url)
  return typeof given === 'string' && sameSecret(given, key)
}

const apiKeyOf = (authorization: string | undefined): string | undefined =>
  /^apikey +(.*)$/i.exec(authorization ?? '')?.[1]

const queryKey = (url: string): string | undefined => {
  const query = url.indexOf('?')
  return query === -1 ? undefined : (new URLSearchParams(url.slice(query + 1)).get('api_key') ?? undefined)
}

const isMethod = (name: string): name is ApiMethodName => Object.hasOwn(API_METHODS, name)

const call = (relay: Relay, method: string, params: unknown, text: string): MaybePromise<string | ReplyError> => {
  if (!isMethod(method)) return NOT_FOUND
  try {
    return API_METHODS[method](relay, new ApiRequest(params, text))
  } catch (error) {
    if (error instanceof BadField) return error.reply
    throw error
  }
}

const runMethod = (relay: Relay, method: string, body: string, log: Log): MaybePromise<ApiReply> => {
  const params = parse(body)
  if (params === undefined) return null
  if (method === 'batch') return runBatch(relay, params, body, log)
  return after(call(relay, method, params, body), (result) =>
    result instanceof ReplyError ? result : resultJson(result)
  )
}

/** Several commands in one request: for small channels the request is half of what a publication costs. */
const runBatch = (relay: Relay, params: unknown, body: string, log: Log): MaybePromise<ApiReply> => {
  if (!isObject(params) || !Array.isArray(params.commands)) return new BadField('commands', 'must be a list').reply
  const texts = entryTexts(fieldText(body, 'commands') ?? '[]')
  const replies = params.commands.map((command: unknown, index) => {
    const [method = ''] = isObject(command) ? Object.keys(command) : []
    const text = texts[index] ?? '{}'
    const params = isObject(command) ? command[method] : undefined
    const called = isMethod(method)
      ? safely(() => call(relay, method, params, fieldText(text, method) ?? '{}'), log)
      : NOT_FOUND
    return after(called, (result) => (result instanceof ReplyError ? errorJson(result) : `{"${method}":${result}}`))
  })
  return joinReplies(replies, (all) => `{"replies":[${all.join(',')}]}`)
}

/** Each command has its answer on a line of its own, in the same order. */
const runCommands = (relay: Relay, _method: string, body: string, log: Log): MaybePromise<ApiReply> => {
  const texts = valueTexts(body)
  const commands = texts.map(parse)
  if (commands.length === 0 || !commands.every(isObject)) return null
  const replies = commands.map((command, index) => {
    const method = methodName(command.method)
    const params = fieldText(texts[index] as string, 'params') ?? '{}'
    const called = safely(() => call(relay, method, command.params ?? {}, params === 'null' ? '{}' : params), log)
    const id = Number.isSafeInteger(command.id) && command.id !== 0 ? `"id":${command.id},` : ''
    return after(
      called,
      (result) => `{${id}${(result instanceof ReplyError ? errorJson(result) : resultJson(result)).slice(1)}`
    )
  })
  return joinReplies(replies, (all) => all.join('\n'))
}

/** By name, in any letter case, or by number. */
const methodName = (method: unknown): string => {
  if (typeof method === 'number') return NUMBERED_METHODS[method] ?? ''
  return typeof method === 'string' ? method.toLowerCase() : method === undefined ? 'publish' : ''
}

/** One command that fails is answered in its place. */
const safely = (run: () => MaybePromise<string | ReplyError>, log: Log): MaybePromise<string | ReplyError> => {
  const failed = (error: unknown): ReplyError => {
    log.error({ err: error }, 'an API call failed')
    return INTERNAL
  }
  try {
    const result = run()
    return result instanceof Promise ? result.catch(failed) : result
  } catch (error) {
    return failed(error)
  }
}

const joinReplies = (
  replies: readonly MaybePromise<string>[],
  join: (replies: readonly string[]) => string
): MaybePromise<string> =>
  replies.some((reply) => reply instanceof Promise) ? Promise.all(replies).then(join) : join(replies as string[])

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
