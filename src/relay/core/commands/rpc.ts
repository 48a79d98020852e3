import type { Encoded } from '../codec/codec.js'
import { DISCONNECT_MALFORMED, Disconnect, ERROR_METHOD_NOT_FOUND, ERROR_NOT_AVAILABLE, ReplyError } from '../codes.js'
import type { EventData } from '../event-proxies.js'
import type { MaybePromise } from '../maybe-promise.js'
import type { RpcRules } from '../options.js'
import { parseRpc } from '../protocol.js'
import type { Client, CommandOutcome, RunningCommand } from '../session/client.js'
import { eventData, replyDataError } from '../session/client-events.js'

/** Calls a method of the backend. */
export const rpc = (
  client: Client,
  request: unknown,
  command: RunningCommand,
  encoded: Encoded
): MaybePromise<CommandOutcome> => {
  const parsed = parseRpc(request)
  if (parsed === null) return DISCONNECT_MALFORMED
  const { method } = parsed
  if (method === client.context.rpcRules.pingMethod) {
    client.reply(command, 'rpc', { data: null })
    return null
  }
  const proxy = proxyFor(method, client.context.rpcRules)
  if (proxy instanceof ReplyError) return proxy
  const data = eventData(client, encoded, 'rpc', request)
  return data instanceof ReplyError ? data : call(client, command, proxy, method, data)
}

const call = async (
  client: Client,
  command: RunningCommand,
  proxy: string,
  method: string,
  data: EventData
): Promise<CommandOutcome> => {
  const { context, events } = client
  const outcome = await events.ask((source) => context.eventProxies.rpc(proxy, { ...source, method, data }))
  if (client.isClosed) return null
  if (outcome instanceof ReplyError || outcome instanceof Disconnect) return outcome
  const dataError = replyDataError(client, outcome.data)
  if (dataError !== null) return dataError
  client.reply(command, 'rpc', outcome)
  return null
}

/** Error 104 for an unknown namespace; 108 if its calls, or all calls, are not available. */
const proxyFor = (
  method: string,
  { withoutNamespace, namespaces, namespaceBoundary }: RpcRules
): string | ReplyError => {
  const end = method.indexOf(namespaceBoundary)
  const proxy = end === -1 ? withoutNamespace : namespaces.get(method.slice(0, end))
  if (proxy !== undefined) return proxy ?? ERROR_NOT_AVAILABLE
  const isAvailable = withoutNamespace !== null || [...namespaces.values()].some((each) => each !== null)
  return isAvailable ? ERROR_METHOD_NOT_FOUND : ERROR_NOT_AVAILABLE
}
