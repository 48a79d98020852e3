import type { Log } from '../core/context.js'
import { EngineFault } from '../core/engine-fault.js'
import { INTERNAL, ReplyError } from '../core/errors.js'
import { JsonObject } from '../core/json-object.js'
import { afterProvenValue, NO_VALUE } from '../core/json-proof.js'
import { afterBlanks, eachEntry, isListAt } from '../core/json-scan.js'
import { after, type MaybePromise } from '../core/maybe-promise.js'
import type { Relay } from '../core/relay.js'
import { API_METHODS, type ApiMethodName, NOT_FOUND, NUMBERED_METHODS } from './api-methods.js'
import { errorJson, resultJson } from './api-reply.js'
import { ApiRequest, BadField } from './api-request.js'

export interface ApiWatch {
  apiAnswered(method: string, seconds: number): void
  apiRefused(method: string, code: number): void
}

/** JSON text of the answer; an error apart, because its status may differ; null for a body that is no JSON. */
export type ApiReply = string | ReplyError | null

/** Gives null for what is no object. Throws `BadField`. */
type RequestReader = () => JsonObject | null

/** A body of empty ones would otherwise hold half a million, and everybody else up for seconds. */
const MAX_COMMANDS = 10_000
const TOO_MANY = new BadField('commands', `must be at most ${MAX_COMMANDS}`)

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
  one(method: string, body: Buffer): MaybePromise<ApiReply> {
    const request = requestIn(body)
    if (request === undefined) return null
    if (method === 'batch') return this.#batch(request, body)
    const called = this.#call(method, () => request)
    return after(called, (result) => (result instanceof ReplyError ? result : resultJson(result)))
  }

  /** A body of commands that name their method. Each has its answer on a line of its own, in the same order. */
  many(body: Buffer): MaybePromise<ApiReply> {
    const commands = commandsIn(body)
    if (commands === null || commands.length === 0) return null
    if (commands.length > MAX_COMMANDS) return TOO_MANY.reply
    const replies = commands.map((command) => {
      const called = this.#call(methodName(command.value('method')), () => paramsOf(command, body))
      const number = command.value('id')
      const id = Number.isSafeInteger(number) && number !== 0 ? `"id":${number},` : ''
      return after(called, (result) => `{${id}${replyJson(result).slice(1)}`)
    })
    return joinReplies(replies, (all) => all.join('\n'))
  }

  /** Several commands in one request: for small channels the request is half of what a publication costs. */
  #batch(request: JsonObject | null, body: Buffer): MaybePromise<ApiReply> {
    const list = request?.place('commands') ?? null
    if (list === null && request?.has('commands')) return thereTwice('commands').reply
    if (list === null || !isListAt(body, list.start)) return new BadField('commands', 'must be a list').reply
    const commands: (JsonObject | null)[] = []
    eachEntry(body, list.start, (start) => commands.push(JsonObject.at(body, start)) <= MAX_COMMANDS)
    if (commands.length > MAX_COMMANDS) return TOO_MANY.reply
    const replies = commands.map((command) => {
      const [method = ''] = command?.names ?? []
      const called = this.#call(method, () => command && objectIn(command, method, body))
      return after(called, (result) => (result instanceof ReplyError ? errorJson(result) : `{"${method}":${result}}`))
    })
    return joinReplies(replies, (all) => `{"replies":[${all.join(',')}]}`)
  }

  #call(method: string, read: RequestReader): MaybePromise<string | ReplyError> {
    if (!isMethod(method)) return NOT_FOUND
    const startedAt = performance.now()
    return after(this.#run(method, read), (result) => {
      this.#watch.apiAnswered(method, (performance.now() - startedAt) / 1000)
      if (result instanceof ReplyError) this.#watch.apiRefused(method, result.code)
      return result
    })
  }

  /** One command that fails is answered in its place; the others go on. */
  #run(method: ApiMethodName, read: RequestReader): MaybePromise<string | ReplyError> {
    const failed = (error: unknown): ReplyError => {
      if (error instanceof BadField) return error.reply
      if (!(error instanceof EngineFault)) this.#log.error({ err: error, method }, 'an API call failed')
      return INTERNAL
    }
    try {
      const result = API_METHODS[method](this.#relay, new ApiRequest(read()))
      return result instanceof Promise ? result.catch(failed) : result
    } catch (error) {
      return failed(error)
    }
  }
}

const isMethod = (name: string): name is ApiMethodName => Object.hasOwn(API_METHODS, name)

/** By name, in any letter case, or by number; none is the first of them. Nothing else is made into a number: it could throw. */
const methodName = (method: unknown): string => {
  if (typeof method === 'string') return method.toLowerCase()
  const number = method ?? 0
  return typeof number === 'number' ? (NUMBERED_METHODS[number] ?? '') : ''
}

const replyJson = (result: string | ReplyError): string =>
  result instanceof ReplyError ? errorJson(result) : resultJson(result)

const joinReplies = (
  replies: readonly MaybePromise<string>[],
  join: (replies: readonly string[]) => string
): MaybePromise<string> =>
  replies.some((reply) => reply instanceof Promise) ? Promise.all(replies).then(join) : join(replies as string[])

/** The request that a body is: null where that is no object, undefined where the body is no JSON. */
const requestIn = (body: Buffer): JsonObject | null | undefined => {
  const start = afterBlanks(body, 0)
  const object = JsonObject.at(body, start)
  const end = object?.end ?? afterProvenValue(body, start)
  return end !== NO_VALUE && afterBlanks(body, end) === body.length ? object : undefined
}

/** Objects with blanks between them, or nothing; null where there is anything else. */
const commandsIn = (body: Buffer): JsonObject[] | null => {
  const commands: JsonObject[] = []
  for (let next = afterBlanks(body, 0); next < body.length && commands.length <= MAX_COMMANDS; ) {
    const command = JsonObject.at(body, next)
    if (command === null) return null
    commands.push(command)
    next = afterBlanks(body, command.end)
  }
  return commands
}

const NO_PARAMS = JsonObject.at(Buffer.from('{}'), 0)

const paramsOf = (command: JsonObject, body: Buffer): JsonObject | null => {
  if (!command.has('params')) return NO_PARAMS
  return objectIn(command, 'params', body) ?? (command.value('params') === null ? NO_PARAMS : null)
}

/** The member of this name; null where it is no object. */
const objectIn = (object: JsonObject, name: string, body: Buffer): JsonObject | null => {
  const place = object.place(name)
  if (place === null) throw thereTwice(name)
  return JsonObject.at(body, place.start)
}

const thereTwice = (name: string): BadField => new BadField(name, 'must be there once')
