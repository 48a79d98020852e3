import type { IncomingMessage, ServerResponse } from 'node:http'
import { sameSecret } from '../../shared/same-secret.js'
import type { RelayConfig } from '../config/config.js'
import { after, EngineError, type MaybePromise } from '../core/broker.js'
import { ERROR_INTERNAL, ReplyError } from '../core/codes.js'
import { forEachElement, INVALID, isListAt, JsonObject, skipWhitespace, validateValue } from '../core/json.js'
import type { Log, Relay } from '../core/relay.js'
import { JSON_TYPE, readBody, respond, respondLong, TEXT_TYPE, TextParts } from '../transport/respond.js'
import { API_METHODS, type ApiMethodName, NOT_FOUND, NUMBERED_METHODS } from './methods.js'
import { ApiBudget, bareErrorJson, errorJson, resultJson, statusOf } from './reply.js'
import { ApiRequest, InvalidField } from './request.js'

/** `POST /api/<method>` with a request, or `POST /api`, where the method is '', with commands that name theirs. */
export type PublishApi = (request: IncomingMessage, response: ServerResponse, method: string) => void

export interface PublishApiParts {
  readonly calls: ApiDispatcher
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
      respond(response, 401, '', ['Connection', 'close'])
      return
    }
    if (request.method !== 'POST') {
      request.resume()
      respond(response, 405, '', ['Allow', 'POST'])
      return
    }
    if (isLeaving()) {
      request.resume()
      respond(response, 503, '', ['Connection', 'close'])
      return
    }
    const asStatus = (request.headers['x-centrifugo-error-mode'] ?? errorMode) === 'transport'
    readBody(request, response, maxBodyBytes, (body) => {
      // Answered already, because the relay shut down while the body was on its way.
      if (response.headersSent) return
      void handleCall(
        response,
        asStatus,
        () => (method === '' ? calls.runCommands(body) : calls.runMethod(method, body)),
        failed
      )
    })
  }

/** An answer comes before the fan-out, which begins when this turn of the event loop ends. */
const handleCall = async (
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
    else refuse(response, ERROR_INTERNAL, asStatus)
  }
}

const write = (response: ServerResponse, reply: ApiReply, asStatus: boolean): MaybePromise<void> => {
  if (reply === null) respond(response, 400, 'the body is not JSON\n', TEXT_TYPE)
  else if (reply instanceof ReplyError) refuse(response, reply, asStatus)
  else return respondLong(response, 200, reply, JSON_TYPE)
}

const refuse = (response: ServerResponse, error: ReplyError, asStatus: boolean): void => {
  if (asStatus) respond(response, statusOf(error), bareErrorJson(error), JSON_TYPE)
  else respond(response, 200, errorJson(error), JSON_TYPE)
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

export interface ApiMetrics {
  apiReplied(method: string, seconds: number): void
  apiError(method: string, code: number): void
  /** Something failed that should not: the cause is in the log. */
  unexpectedError(source: 'api' | 'http'): void
}

/** JSON text of the answer, in one piece or several; an error apart, because its status may differ; null for a body that is no JSON. */
export type ApiReply = string | TextParts | ReplyError | null

/** Gives null for what is no object. Throws `BadField`. */
type RequestReader = () => JsonObject | null

/** A body of empty ones would otherwise hold half a million, and everybody else up for seconds. */
const MAX_COMMANDS = 10_000
const TOO_MANY = new InvalidField('commands', `must be at most ${MAX_COMMANDS}`)

/** Results of these may be large: only so many of them are fetched at the same time. */
const READING: ReadonlySet<string> = new Set(['presence', 'presence_stats', 'history', 'channels', 'info'])
const READS_AT_ONCE = 16

// Longer ones are neither a method nor an id, whatever they are.
const MAX_METHOD_BYTES = 64
const MAX_ID_BYTES = 20

/** One of several commands in a body. */
interface Command {
  readonly method: string
  readonly read: RequestReader
}

type Result = string | ReplyError

/** Runs what a body asks for. */
export class ApiDispatcher {
  readonly #relay: Relay
  readonly #metrics: ApiMetrics
  readonly #log: Log

  constructor(relay: Relay, metrics: ApiMetrics, log: Log) {
    this.#relay = relay
    this.#metrics = metrics
    this.#log = log
  }

  /** A body that is the request of one method. */
  runMethod(method: string, body: Buffer): MaybePromise<ApiReply> {
    const request = requestIn(body)
    if (request === undefined) return null
    if (method === 'batch') return this.#batch(request, body)
    const called = this.#call({ method, read: () => request }, new ApiBudget())
    return after(called, (result) => (result instanceof ReplyError ? result : resultJson(result)))
  }

  /** A body of commands that name their method. Each has its answer on a line of its own, in the same order. */
  async runCommands(body: Buffer): Promise<ApiReply> {
    const commands = commandsIn(body)
    if (commands === null || commands.length === 0) return null
    if (commands.length > MAX_COMMANDS) return TOO_MANY.reply
    const results = await this.#callAll(commands, (command) => ({
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

  /** Several commands in one request: for small channels the request is half of what a publication costs. */
  async #batch(request: JsonObject | null, body: Buffer): Promise<ApiReply> {
    const list = request?.span('commands') ?? null
    if (list === null && request?.has('commands')) return thereTwice('commands').reply
    if (list === null || !isListAt(body, list.start)) return new InvalidField('commands', 'must be a list').reply
    const commands: (JsonObject | null)[] = []
    forEachElement(body, list.start, (start) => commands.push(JsonObject.at(body, start)) <= MAX_COMMANDS)
    if (commands.length > MAX_COMMANDS) return TOO_MANY.reply
    const methods = commands.map((command) => command?.names[0] ?? '')
    const results = await this.#callAll(commands, (command, index) => {
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

  /** Starts the commands in their order, in slices: everybody else is served in between. */
  async #callAll<Entry>(
    entries: readonly Entry[],
    commandOf: (entry: Entry, index: number) => Command
  ): Promise<readonly Result[]> {
    const work = new ApiBudget()
    const { slices } = work
    const results: MaybePromise<Result>[] = []
    let reads: Promise<Result>[] = []
    for (let index = 0; index < entries.length; index++) {
      if (slices.isOverAt(work.nowMs)) await slices.next()
      const command = commandOf(entries[index] as Entry, index)
      const result = this.#call(command, work)
      results.push(result)
      if (work.barrier !== null) {
        await work.barrier
        work.barrier = null
      }
      if (result instanceof Promise && READING.has(command.method)) reads.push(result)
      if (reads.length === READS_AT_ONCE) {
        await Promise.all(reads)
        reads = []
      }
    }
    return results.some((result) => result instanceof Promise) ? Promise.all(results) : (results as Result[])
  }

  /** Never throws, and its promise never rejects: one command that fails is answered in its place, and the others go on. */
  #call({ method, read }: Command, work: ApiBudget): MaybePromise<Result> {
    if (!isMethod(method)) return NOT_FOUND
    const startedAt = performance.now()
    work.nowMs = startedAt
    const answered = (result: Result): Result => {
      const nowMs = performance.now()
      work.nowMs = nowMs
      this.#metrics.apiReplied(method, (nowMs - startedAt) / 1000)
      if (result instanceof ReplyError) this.#metrics.apiError(method, result.code)
      return result
    }
    const failed = (error: unknown): Result => answered(this.#failure(method, error))
    try {
      const result = API_METHODS[method](this.#relay, new ApiRequest(read()), work)
      return result instanceof Promise ? result.then(answered, failed) : answered(result)
    } catch (error) {
      return failed(error)
    }
  }

  #failure(method: ApiMethodName, error: unknown): ReplyError {
    if (error instanceof InvalidField) return error.reply
    if (!(error instanceof EngineError)) {
      this.#metrics.unexpectedError('api')
      this.#log.error({ err: error, method }, 'API call failed')
    }
    return ERROR_INTERNAL
  }
}

/** Longer ones are not copied into a text with what is around them. */
const SHORT_RESULT = 1024

const addResult = (texts: string[], before: string, result: string): void => {
  if (result.length <= SHORT_RESULT) texts.push(`${before}${result}}`)
  else texts.push(before, result, '}')
}

const isMethod = (name: string): name is ApiMethodName => Object.hasOwn(API_METHODS, name)

/** By name, in any letter case, or by number; none is the first of them. Nothing else is made into a number: it could throw. */
const methodOf = (command: JsonObject): string => {
  if (!command.has('method')) return NUMBERED_METHODS[0]
  const method = command.shortValue('method', MAX_METHOD_BYTES)
  if (typeof method === 'string') return method.toLowerCase()
  const number = method === null ? 0 : method
  return typeof number === 'number' ? (NUMBERED_METHODS[number] ?? '') : ''
}

const idText = (command: JsonObject): string => {
  const id = command.shortValue('id', MAX_ID_BYTES)
  return Number.isSafeInteger(id) && id !== 0 ? `"id":${id},` : ''
}

/** The request that a body is: null where that is no object, undefined where the body is no JSON. */
const requestIn = (body: Buffer): JsonObject | null | undefined => {
  const start = skipWhitespace(body, 0)
  const object = JsonObject.at(body, start)
  const end = object?.end ?? validateValue(body, start)
  return end !== INVALID && skipWhitespace(body, end) === body.length ? object : undefined
}

/** Objects with blanks between them, or nothing; null where there is anything else. */
const commandsIn = (body: Buffer): JsonObject[] | null => {
  const commands: JsonObject[] = []
  for (let next = skipWhitespace(body, 0); next < body.length && commands.length <= MAX_COMMANDS; ) {
    const command = JsonObject.at(body, next)
    if (command === null) return null
    commands.push(command)
    next = skipWhitespace(body, command.end)
  }
  return commands
}

const NO_PARAMS = JsonObject.at(Buffer.from('{}'), 0)

const paramsOf = (command: JsonObject, body: Buffer): JsonObject | null => {
  if (!command.has('params')) return NO_PARAMS
  return objectIn(command, 'params', body) ?? (command.text('params') === 'null' ? NO_PARAMS : null)
}

/** The member of this name; null where it is no object. */
const objectIn = (object: JsonObject, name: string, body: Buffer): JsonObject | null => {
  const place = object.span(name)
  if (place === null) throw thereTwice(name)
  return JsonObject.at(body, place.start)
}

const thereTwice = (name: string): InvalidField => new InvalidField(name, 'must be there once')
