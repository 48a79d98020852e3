import { randomUUID } from 'node:crypto'
import { monotonicMs } from '../../../shared/monotonic.js'
import { EngineError } from '../../core/engine.js'
import { TimeSlice } from '../../core/time-slice.js'
import { chunks } from './batching.js'
import type { CommandConnection } from './command-connection.js'
import { SlotError, stringListReply } from './connection.js'
import { channelKey } from './keys.js'
import { PUBLISH_TO_MANY } from './publish-scripts.js'
import type { Shard } from './shard.js'

// Limits of one script call. Longer calls would block Redis for other commands and fill its buffers for subscribers: by default
// Redis disconnects a subscriber that is 32 MB behind.
const MAX_CHANNELS_PER_SCRIPT = 128
const MAX_CHARACTERS_PER_SCRIPT = 4 * 1024 * 1024

/** Longer than any broadcast takes. */
const BODY_TTL_MS = 60_000

export interface BroadcastTarget {
  readonly topic: string
  /** Script arguments that describe the channel's history. */
  readonly historyArguments: readonly string[]
}

export interface BroadcastBody {
  readonly body: string
  readonly version: number
  readonly versionEpoch: string
  readonly idempotencyKey: string
}

/**
 * Publishes to channels of one server and sends the body once, however many channels there are. The outcome of each channel is
 * the reply of `PUBLISH_TO_MANY` or an error. After `SlotError` nothing was published to that channel.
 */
export const broadcastToShard = async (
  shard: Shard,
  targets: readonly BroadcastTarget[],
  body: BroadcastBody
): Promise<readonly (string | EngineError)[]> => {
  const perScript = Math.min(
    MAX_CHANNELS_PER_SCRIPT,
    Math.max(1, Math.floor(MAX_CHARACTERS_PER_SCRIPT / body.body.length))
  )
  const { commands } = shard
  if (targets.length <= perScript) return runBroadcastScript(shard, targets, body, '')
  // With the name of a channel of this server as prefix, so that the key is on the same server.
  const bodyKey = channelKey(targets[0]?.topic ?? '', 'broadcastBody', randomUUID())
  try {
    await commands.send('set', [bodyKey, body.body, 'PX', String(BODY_TTL_MS)])
  } catch (error) {
    const engineError = toEngineError(error)
    return targets.map(() => engineError)
  }
  const outcomes: (string | EngineError)[] = []
  // One call after the other, so that subscribers and other commands are served in between.
  for (const batch of chunks(targets, perScript)) {
    for (const outcome of await runBroadcastScript(shard, batch, body, bodyKey)) outcomes.push(outcome)
  }
  await deleteKey(commands, bodyKey)
  return outcomes
}

const runBroadcastScript = async (
  { commands }: Shard,
  targets: readonly BroadcastTarget[],
  { body, version, versionEpoch, idempotencyKey }: BroadcastBody,
  bodyKey: string
): Promise<readonly (string | EngineError)[]> => {
  const args = [
    ...[bodyKey, bodyKey === '' ? body : ''],
    ...[String(body.length), String(version), versionEpoch, idempotencyKey]
  ]
  for (const { topic, historyArguments } of targets) args.push(topic, ...historyArguments)
  try {
    const replies = stringListReply(await commands.runPublishScript(PUBLISH_TO_MANY, [], args))
    return replies.map((reply) => (reply.startsWith('e') ? scriptError(reply.slice(1)) : reply))
  } catch (error) {
    const engineError = toEngineError(error)
    return targets.map(() => engineError)
  }
}

const scriptError = (message: string): EngineError =>
  SlotError.isScriptError(message) ? new SlotError(message, message) : new EngineError(message)

const toEngineError = (error: unknown): EngineError => {
  if (!(error instanceof EngineError)) throw error
  return error instanceof SlotError ? error : scriptError(error.message)
}

/** A failure is ignored: the key expires. */
const deleteKey = async (commands: CommandConnection, key: string): Promise<void> => {
  try {
    await commands.send('del', [key])
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
  }
}

/** Groups targets by server, with their indexes. Calls `rejected` for a channel whose hash slot has no server. */
export const groupByShard = async <T extends { readonly channel: string }>(
  targets: readonly T[],
  shardOf: (channel: string) => Shard,
  rejected: (index: number, error: EngineError) => void
): Promise<ReadonlyMap<Shard, ReadonlyMap<number, T>>> => {
  const groups = new Map<Shard, Map<number, T>>()
  const slice = new TimeSlice(monotonicMs)
  for (const [index, target] of targets.entries()) {
    if (slice.isOverAfterStep) await slice.next()
    try {
      const shard = shardOf(target.channel)
      const group = groups.get(shard)
      if (group === undefined) groups.set(shard, new Map([[index, target]]))
      else group.set(index, target)
    } catch (error) {
      rejected(index, toEngineError(error))
    }
  }
  return groups
}
