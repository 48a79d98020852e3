import type { Relay } from '../core/relay.js'
import { containRequest } from './contain.js'
import { corsHeaders, PREFLIGHT } from './cors.js'
import type { Door } from './door.js'
import { answer, BODY_TIMEOUT_MS, limitBodyTime, readBody, TEXT_TYPE } from './http-answer.js'
import type { HttpRoute } from './http-stream.js'
import { asksForProtobuf } from './protobuf.js'

const MAX_EMULATION_BYTES = 65_536

/** `POST /emulation`: what a client over a response says, with the session that it was given. */
export const emulation =
  (relay: Relay, door: Door): HttpRoute =>
  (request, response) => {
    if (!door.allowsOrigin(request)) {
      answer(response, 403)
      return
    }
    const cors = corsHeaders(request)
    if (request.method === 'OPTIONS') {
      answer(response, 204, '', [...cors, ...PREFLIGHT])
      return
    }
    if (request.method !== 'POST') {
      answer(response, 405, '', ['Allow', 'POST, OPTIONS'])
      return
    }
    if (asksForProtobuf(request)) {
      answer(response, 400, 'protobuf is not supported\n', [...cors, ...TEXT_TYPE, 'Connection', 'close'])
      return
    }
    const receive = async (body: Buffer): Promise<void> => {
      // The time for the body was over just before it was complete.
      if (response.headersSent) return
      const message = parseEmulation(body.toString())
      if (message === null) {
        answer(response, 400, '', cors)
        return
      }
      // A load balancer may bring it to another node than the one that holds the response.
      const { node, ...said } = message
      const isThere = await relay.context.fleet.askOne(node, 'emulate', said)
      answer(response, isThere === true ? 204 : 404, '', cors)
    }
    limitBodyTime(request, response, BODY_TIMEOUT_MS, cors)
    const take = (body: Buffer): void => void containRequest(relay.context, response, () => receive(body))
    readBody(request, response, MAX_EMULATION_BYTES, take, cors)
  }

interface Emulated {
  readonly session: string
  readonly node: string
  readonly data: string
}

const parseEmulation = (text: string): Emulated | null => {
  try {
    const { session, node, data } = Object(JSON.parse(text)) as Record<string, unknown>
    if (typeof session !== 'string' || typeof node !== 'string' || typeof data !== 'string') return null
    return { session, node, data }
  } catch {
    return null
  }
}
