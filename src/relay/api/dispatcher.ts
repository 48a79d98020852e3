import type { Log } from '../../shared/log.js'
import type { Span } from '../../shared/tracing.js'
import { forEachElement, INVALID, isListAt, skipValue, skipWhitespace, sliceText } from '../core/codec/json.js'
import { LazyJsonObject } from '../core/codec/json-members.js'
import { ERROR_INTERNAL, ERROR_METHOD_NOT_FOUND, ReplyError } from '../core/codes.js'
import { EngineError } from '../core/engine.js'
import { after, type MaybePromise } from '../core/maybe-promise.js'
import type { Relay } from '../core/relay.js'
import { InvalidField, InvalidType } from '../json-fields.js'
import { TextParts } from '../transport/respond.js'
import { API_METHODS, type ApiMethodName, NUMBERED_METHODS } from './methods.js'
import { ApiBudget, type ApiResult, errorJson, resultJson } from './reply.js'
import { ApiRequest } from './request.js'

export interface ApiMetrics {
  apiReplied(method: string, seconds: number): void
  apiError(method: string, code: number): void
  unexpectedError(source: 'api' | 'http'): void
}

/** The JSON text of the response, an error (whose HTTP status may differ), or null for a body that is not JSON. */
export type ApiReply = string | TextParts | ReplyError | null

/** Returns null for a value that is not an object. Throws `InvalidField`. */
type RequestReader = () => LazyJsonObject | null

/** Without this limit a body of empty commands would hold half a million of them and block the event loop for seconds. */
const MAX_COMMANDS = 10_000
const TOO_MANY = new InvalidField('commands', `must be at most ${MAX_COMMANDS}`)

/** Methods with large results; at most `READS_AT_ONCE` of them run at the same time. */
const READ_METHODS: ReadonlySet<string> = new Set([
  'presence',
  'presence_stats',
  'history',
  'channels',
  'info',
  'map_read_state',
  'map_read_stream'
])
const READS_AT_ONCE = 16

// Longer values cannot be a method name or an id.
const MAX_METHOD_BYTES = 64
const MAX_ID_BYTES = 20

interface ApiCommand {
  readonly method: string
  readonly read: RequestReader
}

/** Runs the commands in the body of an API request. */
export class ApiDispatcher {
  readonly #relay: Relay
  readonly #metrics: ApiMetrics
  readonly #log: Log

  constructor(relay: Relay, metrics: ApiMetrics, log: Log) {
    this.#relay = relay
    this.#metrics = metrics
    this.#log = log
  }

  /** `body` is the request of one method. */
  runMethod(method: string, body: Buffer, span: Span | null = null): MaybePromise<ApiReply> {
    const request = requestIn(body)
    if (request === undefined) return null
    if (method === 'batch') return this.#batch(request, body, span)
    const called = this.#call({ method, read: () => request }, new ApiBudget(span, this.#metrics))
    return after(called, (result) => (result instanceof ReplyError ? result : resultJson(result)))
  }

  /** `body` is a sequence of commands that name their method. The response has one line per command, in the same order. */
  async runCommands(body: Buffer, span: Span | null = null): Promise<ApiReply> {
    const commands = commandsIn(body)
    if (commands === null || commands.length === 0) return null
    if (commands.length > MAX_COMMANDS) return TOO_MANY.reply
    const results = await this.#callAll(commands, span, (command) => ({
      method: methodOf(command),
      read: () => paramsOf(command, body)
    }))
    const texts: string[] = []
    for (const [index, command] of commands.entries()) {
      const result = results[index] ?? ERROR_INTERNAL
      const before = `${index === 0 ? '' : '\n'}{${idText(command)}`
      if (result instanceof ReplyError) texts.push(`${before}${errorJson(result).slice(1)}`)
      else addResult(texts, `${before}"result":`, result)
    }
    return new TextParts(texts)
  }

  /** Several commands in one request: for small channels the HTTP request is half of the cost of a publication. */
  async #batch(request: LazyJsonObject | null, body: Buffer, span: Span | null): Promise<ApiReply> {
    if (request === null) return new InvalidType('the request', 'must be an object').reply
    const list = request.range('commands')
    if (list === null && request.has('commands')) return duplicateField('commands').reply
    if (list === null) return new InvalidField('commands', 'is missing').reply
    if (!isListAt(body, list.start)) return new InvalidType('commands', 'must be a list').reply
    const commands: (LazyJsonObject | null)[] = []
    forEachElement(body, list.start, (start) => commands.push(LazyJsonObject.at(body, start)) <= MAX_COMMANDS)
    if (commands.length > MAX_COMMANDS) return TOO_MANY.reply
    const methods = commands.map((command) => command?.names[0] ?? '')
    const results = await this.#callAll(commands, span, (command, index) => {
      const method = methods[index] ?? ''
      return { method, read: () => command && objectIn(command, method, body) }
    })
    const texts = ['{"replies":[']
    for (const [index, result] of results.entries()) {
      const comma = index === 0 ? '' : ','
      if (result instanceof ReplyError) texts.push(`${comma}${errorJson(result)}`)
      else addResult(texts, `${comma}{"${methods[index]}":`, result)
    }
    texts.push(']}')
    return new TextParts(texts)
  }

  /** Starts the commands in order, in time slices, so that other clients are served in between. */
  async #callAll<Entry>(
    entries: readonly Entry[],
    span: Span | null,
    commandOf: (entry: Entry, index: number) => ApiCommand
  ): Promise<readonly ApiResult[]> {
    const budget = new ApiBudget(span, this.#metrics)
    const { slices } = budget
    const results: MaybePromise<ApiResult>[] = []
    let reads: Promise<ApiResult>[] = []
    for (const [index, entry] of entries.entries()) {
      if (slices.isOverAt(budget.nowMs)) await slices.next()
      const command = commandOf(entry, index)
      const result = this.#call(command, budget)
      results.push(result)
      if (budget.barrier !== null) {
        await budget.barrier
        budget.barrier = null
      }
      if (result instanceof Promise && READ_METHODS.has(command.method)) reads.push(result)
      if (reads.length === READS_AT_ONCE) {
        await Promise.all(reads)
        reads = []
      }
    }
    return Promise.all(results)
  }

  /** Never throws or rejects: a failed command becomes an error in the response and the others run. */
  #call({ method, read }: ApiCommand, budget: ApiBudget): MaybePromise<ApiResult> {
    if (!isMethod(method)) return ERROR_METHOD_NOT_FOUND
    const startedAt = performance.now()
    budget.nowMs = startedAt
    const finish = (result: ApiResult): ApiResult => {
      const nowMs = performance.now()
      budget.nowMs = nowMs
      this.#metrics.apiReplied(method, (nowMs - startedAt) / 1000)
      if (result instanceof ReplyError) this.#metrics.apiError(method, result.code)
      return result
    }
    const fail = (error: unknown): ApiResult => finish(this.#errorOf(method, error, budget.span))
    try {
      const result = API_METHODS[method](this.#relay, new ApiRequest(read()), budget)
      return result instanceof Promise ? result.then(finish, fail) : finish(result)
    } catch (error) {
      return fail(error)
    }
  }

  #errorOf(method: ApiMethodName, error: unknown, span: Span | null): ReplyError {
    if (error instanceof InvalidField) return error.reply
    if (!(error instanceof EngineError)) {
      this.#metrics.unexpectedError('api')
      this.#log.error(
        { err: error, command: method, ...(span !== null && { traceId: span.traceId }) },
        'API call failed'
      )
    }
    return ERROR_INTERNAL
  }
}

/** Longer results are not copied into a new string. */
const SHORT_RESULT = 1024

const addResult = (texts: string[], before: string, result: string): void => {
  if (result.length <= SHORT_RESULT) texts.push(`${before}${result}}`)
  else texts.push(before, result, '}')
}

const isMethod = (name: string): name is ApiMethodName => Object.hasOwn(API_METHODS, name)

/** A method is given by name, in any letter case, or by number; the default is number 0. */
const methodOf = (command: LazyJsonObject): string => {
  if (!command.has('method')) return NUMBERED_METHODS[0]
  const method = command.shortValue('method', MAX_METHOD_BYTES)
  if (typeof method === 'string') return method.toLowerCase()
  const number = method === null ? 0 : method
  return typeof number === 'number' ? (NUMBERED_METHODS[number] ?? '') : ''
}

const idText = (command: LazyJsonObject): string => {
  const id = command.shortValue('id', MAX_ID_BYTES)
  return Number.isSafeInteger(id) && id !== 0 ? `"id":${id},` : ''
}

/** The request in a body, empty for `null`; null for other JSON that is not an object, undefined for a body that is not JSON. */
const requestIn = (body: Buffer): LazyJsonObject | null | undefined => {
  const start = skipWhitespace(body, 0)
  const object = LazyJsonObject.at(body, start)
  const end = object?.end ?? skipValue(body, start)
  if (end === INVALID || skipWhitespace(body, end) !== body.length) return undefined
  return object ?? (sliceText(body, start, end) === 'null' ? NO_PARAMS : null)
}

/** Reads objects that are separated by whitespace only; null for any other body. */
const commandsIn = (body: Buffer): LazyJsonObject[] | null => {
  const commands: LazyJsonObject[] = []
  for (let next = skipWhitespace(body, 0); next < body.length && commands.length <= MAX_COMMANDS; ) {
    const command = LazyJsonObject.at(body, next)
    if (command === null) return null
    commands.push(command)
    next = skipWhitespace(body, command.end)
  }
  return commands
}

const NO_PARAMS = LazyJsonObject.at(Buffer.from('{}'), 0)

const paramsOf = (command: LazyJsonObject, body: Buffer): LazyJsonObject | null => {
  if (!command.has('params')) return NO_PARAMS
  return objectIn(command, 'params', body) ?? (command.text('params') === 'null' ? NO_PARAMS : null)
}

/** The member `name`, or null if its value is not an object. */
const objectIn = (object: LazyJsonObject, name: string, body: Buffer): LazyJsonObject | null => {
  const range = object.range(name)
  if (range === null) throw duplicateField(name)
  return LazyJsonObject.at(body, range.start)
}

const duplicateField = (name: string): InvalidField => new InvalidField(name, 'must be there once')
