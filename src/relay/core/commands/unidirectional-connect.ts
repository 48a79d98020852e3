import { isObject } from '../../../shared/is-object.js'
import { jsonOrUndefined } from '../../../shared/json-or-undefined.js'
import {
  DISCONNECT_CONNECTION_EXPIRED,
  DISCONNECT_INAPPROPRIATE_PROTOCOL,
  DISCONNECT_INTERNAL_ERROR,
  DISCONNECT_MALFORMED,
  DISCONNECT_NOT_PERMITTED,
  DISCONNECT_TOO_MANY_COMMANDS,
  Disconnect,
  ERROR_BINARY_CHANNEL,
  ERROR_EXPIRED,
  ERROR_PERMISSION_DENIED,
  ERROR_TOKEN_EXPIRED,
  ERROR_TOO_MANY_REQUESTS,
  type ReplyError
} from '../codes.js'
import { EngineError } from '../engine.js'
import { parseConnect } from '../protocol.js'
import type { Client, FrameHandler } from '../session/client.js'
import { connect } from './connect.js'

/** A connect request as JSON text; null if it is malformed. Empty text is a request without parameters. */
export const parseConnectRequest = (text: string): Readonly<Record<string, unknown>> | null => {
  if (text.trim() === '') return {}
  const request = jsonOrUndefined(text)
  return isObject(request) && parseConnect(request) !== null ? request : null
}

/** Connects a client that only receives with its first frame. Errors close the client, because it has no replies. */
export class UnidirectionalConnect implements FrameHandler {
  readonly #client: Client
  readonly #bearerToken: string
  #hasBegun = false

  constructor(client: Client, bearerToken: string) {
    this.#client = client
    this.#bearerToken = bearerToken
  }

  handle(frame: string | Buffer): void {
    if (this.#hasBegun || this.#client.isClosed) return
    this.#hasBegun = true
    void this.#connect(frame.toString())
  }

  async #connect(text: string): Promise<void> {
    const client = this.#client
    const request = parseConnectRequest(text)
    if (request === null) {
      client.close(DISCONNECT_MALFORMED)
      return
    }
    const { token } = request
    const hasToken = typeof token === 'string' && token !== ''
    try {
      const { metrics } = client.context
      // The result is a push, which has no id.
      const command = { id: 0, traffic: metrics.sent(client.transport.name, 'push_connect', '') }
      const identified = hasToken ? request : { ...request, token: this.#bearerToken }
      const outcome = await connect(client, identified, command, `{"connect":${text.trim() === '' ? '{}' : text}}`)
      if (outcome !== null) client.close(outcome instanceof Disconnect ? outcome : disconnectFor(outcome))
    } catch (error) {
      if (error instanceof EngineError) client.close(DISCONNECT_INTERNAL_ERROR)
      else client.fail(error, 'connect')
    }
  }
}

const disconnectFor = (error: ReplyError): Disconnect => {
  // Clients do not reconnect after this code; trying again would not help.
  if (error === ERROR_BINARY_CHANNEL) return DISCONNECT_INAPPROPRIATE_PROTOCOL
  const { code } = error
  if (code === ERROR_TOKEN_EXPIRED.code || code === ERROR_EXPIRED.code) return DISCONNECT_CONNECTION_EXPIRED
  if (code === ERROR_TOO_MANY_REQUESTS.code) return DISCONNECT_TOO_MANY_COMMANDS
  return code === ERROR_PERMISSION_DENIED.code ? DISCONNECT_NOT_PERMITTED : DISCONNECT_INTERNAL_ERROR
}
