import type { Log } from '../core/context.js'
import { EngineFault } from '../core/engine-fault.js'
import { INTERNAL, ReplyError } from '../core/errors.js'
import { entryTexts, fieldText, valueTexts } from '../core/json-text.js'
import { after, type MaybePromise } from '../core/maybe-promise.js'
import type { Relay } from '../core/relay.js'
import { isObject } from '../core/requests.js'
import { API_METHODS, type ApiMethodName, NOT_FOUND, NUMBERED_METHODS } from './api-methods.js'
import { errorJson, resultJson } from './api-reply.js'
import { ApiRequest, BadField } from './api-request.js'

export interface ApiWatch {
  apiAnswered(method: string, seconds: number): void
  apiRefused(method: string, code: number): void
}

/** JSON text of the answer; an error apart, because its status may differ; null for a body that is no JSON. */
export type ApiReply = string | ReplyError | null

/** Runs what a body asks for. */
export class ApiCalls {
  readonly #relay: Relay
  readonly #watch: ApiWatch
  readonly #log: Log

  constructor(relay: Relay, watch: ApiWatch, log: Log) {
    this.#relay = relay
    this.#watch = watch
    this.#log = log
  }

  /** A body that is the request of one method. */
  one(method: string, body: string): MaybePromise<ApiReply> {
    const params = parse(body)
    if (params === undefined) return null
    if (method === 'batch') return this.#batch(params, body)
    const called = this.#call(method, params, body)
    return after(called, (result) => (result instanceof ReplyError ? result : resultJson(result)))
  }

  /** A body of commands that name their method. Each has its answer on a line of its own, in the same order. */
  many(body: string): MaybePromise<ApiReply> {
    const texts = valueTexts(body)
    const commands = texts.map(parse)
    if (commands.length === 0 || !commands.every(isObject)) return null
    const replies = commands.map((command, index) => {
      const text = fieldText(texts[index] as string, 'params') ?? '{}'
      const called = this.#call(methodName(command.method), command.params ?? {}, text === 'null' ? '{}' : text)
      const id = Number.isSafeInteger(command.id) && command.id !== 0 ? `"id":${command.id},` : ''
      return after(called, (result) => `{${id}${replyJson(result).slice(1)}`)
    })
    return joinReplies(replies, (all) => all.join('\n'))
  }

  /** Several commands in one request: for small channels the request is half of what a publication costs. */
  #batch(params: unknown, body: string): MaybePromise<ApiReply> {
    if (!isObject(params) || !Array.isArray(params.commands)) return new BadField('commands', 'must be a list').reply
    const texts = entryTexts(fieldText(body, 'commands') ?? '[]')
    const replies = params.commands.map((command: unknown, index) => {
      const [method = ''] = isObject(command) ? Object.keys(command) : []
      const text = fieldText(texts[index] ?? '{}', method) ?? '{}'
      const called = this.#call(method, isObject(command) ? command[method] : undefined, text)
      return after(called, (result) => (result instanceof ReplyError ? errorJson(result) : `{"${method}":${result}}`))
    })
    return joinReplies(replies, (all) => `{"replies":[${all.join(',')}]}`)
  }

  #call(method: string, params: unknown, text: string): MaybePromise<string | ReplyError> {
    if (!isMethod(method)) return NOT_FOUND
    const startedAt = performance.now()
    return after(this.#run(method, params, text), (result) => {
      this.#watch.apiAnswered(method, (performance.now() - startedAt) / 1000)
      if (result instanceof ReplyError) this.#watch.apiRefused(method, result.code)
      return result
    })
  }

  /** One command that fails is answered in its place; the others go on. */
  #run(method: ApiMethodName, params: unknown, text: string): MaybePromise<string | ReplyError> {
    const failed = (error: unknown): ReplyError => {
      if (error instanceof BadField) return error.reply
      if (!(error instanceof EngineFault)) this.#log.error({ err: error, method }, 'an API call failed')
      return INTERNAL
    }
    try {
      const result = API_METHODS[method](this.#relay, new ApiRequest(params, text))
      return result instanceof Promise ? result.catch(failed) : result
    } catch (error) {
      return failed(error)
    }
  }
}

const isMethod = (name: string): name is ApiMethodName => Object.hasOwn(API_METHODS, name)

/** By name, in any letter case, or by number; none is the first of them. */
const methodName = (method: unknown): string => {
  if (typeof method === 'string') return method.toLowerCase()
  return NUMBERED_METHODS[method === undefined ? 0 : Number(method)] ?? ''
}

const replyJson = (result: string | ReplyError): string =>
  result instanceof ReplyError ? errorJson(result) : resultJson(result)

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
