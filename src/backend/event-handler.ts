import { readUpTo } from '../shared/bounded-body.js'
import { isObject } from '../shared/is-object.js'
import { jsonOrUndefined } from '../shared/json-or-undefined.js'
import type { EventName, Events } from './event-types.js'
import { verifyWebhook } from './verify-webhook.js'

/** Thrown by a handler: the client receives this error. Codes of applications are 400 to 1999. */
export class EventError extends Error {
  override readonly name = 'EventError'
  readonly code: number
  /** Whether the client may try again. */
  readonly temporary: boolean

  constructor(code: number, message: string, { temporary = false }: { readonly temporary?: boolean } = {}) {
    super(message)
    this.code = code
    this.temporary = temporary
  }
}

/** Thrown by a handler: the client is disconnected. It reconnects after codes 4000 to 4499 and stays away after 4500 to 4999. */
export class EventDisconnect extends Error {
  override readonly name = 'EventDisconnect'
  readonly code: number

  constructor(code: number, reason: string) {
    super(reason)
    this.code = code
  }
}

export interface EventHandlerOptions {
  /**
   * `signing_secret` of the relay's proxy, and during a rotation the previous one. Without secrets everybody who reaches the
   * handler can send events.
   */
  readonly secrets?: readonly string[]
  /** Larger requests are rejected. */
  readonly maxBytes?: number
}

const MAX_BYTES = 1024 * 1024

const CLIENT_FIELDS = ['client', 'transport', 'protocol', 'encoding']

const REQUIRED_FIELDS: Readonly<Record<EventName, readonly string[]>> = {
  connect: CLIENT_FIELDS,
  refresh: [...CLIENT_FIELDS, 'user'],
  subscribe: [...CLIENT_FIELDS, 'user', 'channel'],
  sub_refresh: [...CLIENT_FIELDS, 'user', 'channel'],
  publish: [...CLIENT_FIELDS, 'user', 'channel'],
  rpc: [...CLIENT_FIELDS, 'user', 'method'],
  state: []
}

/**
 * Answers the requests of one event proxy. `request` has the headers that the proxy forwards; its body has been read. If `handle` throws `EventError` or `EventDisconnect`, the client receives that.
 * Other errors are passed to the caller, usually a framework that logs them and responds with status 500.
 */
export const eventHandler = <Name extends EventName>(
  name: Name,
  handle: (event: Events[Name]['event'], request: Request) => Events[Name]['result'] | Promise<Events[Name]['result']>,
  { secrets, maxBytes = MAX_BYTES }: EventHandlerOptions = {}
): ((request: Request) => Promise<Response>) => {
  if (secrets !== undefined && (secrets.length === 0 || secrets.some((secret) => !secret)))
    throw new TypeError('secrets must not be empty')
  return async (request) => {
    if (request.method !== 'POST') return problem(405, 'the relay sends POST requests')
    const body = await readUpTo(request.body ?? [], maxBytes)
    if (body === null) return problem(413, `the body has more than ${maxBytes} bytes`)
    if (secrets !== undefined && !verifyWebhook(body, request.headers, secrets))
      return problem(401, 'the signature is missing, too old or made with another secret')
    const event = parseEvent(name, body)
    if (event === null) return problem(400, `the body is not a ${name} event of the relay`)
    try {
      return respond(await handle(event, request))
    } catch (error) {
      if (error instanceof EventError)
        return json({ error: { code: error.code, message: error.message, temporary: error.temporary } })
      if (error instanceof EventDisconnect) return json({ disconnect: { code: error.code, reason: error.message } })
      throw error
    }
  }
}

const respond = (result: unknown): Response => json(result === null ? {} : { result: result ?? {} })

/** The relay treats every status except 200 as a failure; the text is for people. */
const problem = (status: number, message: string): Response => json({ message }, status)

const json = (value: object, status = 200): Response => Response.json(value, { status })

const parseEvent = <Name extends EventName>(name: Name, body: Buffer): Events[Name]['event'] | null => {
  const fields = jsonOrUndefined(body.toString())
  // The relay leaves out an empty method.
  const event = name === 'rpc' && isObject(fields) ? { method: '', ...fields } : fields
  return isEvent(name, event) ? event : null
}

const isEvent = <Name extends EventName>(name: Name, event: unknown): event is Events[Name]['event'] =>
  isObject(event) &&
  REQUIRED_FIELDS[name].every((field) => typeof event[field] === 'string') &&
  (name !== 'state' || (Array.isArray(event.events) && event.events.every(isStateChange)))

const isStateChange = (value: unknown): boolean =>
  isObject(value) &&
  typeof value.channel === 'string' &&
  typeof value.id === 'string' &&
  (value.type === 'occupied' || value.type === 'vacated')
