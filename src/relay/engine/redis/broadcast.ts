import { randomUUID } from 'node:crypto'
import { EngineError } from '../../core/broker.js'
import { TimeSlice } from '../../core/time-slice.js'
import { type CommandLink, Moved } from './command-link.js'
import { inBatches } from './engine.js'
import { PUBLISH_TO_MANY } from './scripts.js'
import type { Shard } from './shard.js'

// More at once would keep Redis from its other work for too long, and fill what it holds for subscribers: by default it
// disconnects one that is 32 MB behind.
const MAX_CHANNELS_AT_ONCE = 128
const MAX_CHARACTERS_AT_ONCE = 4 * 1024 * 1024

/** For as long as no broadcast takes. */
const BODY_KEPT_MS = 60_000

export interface BroadcastTarget {
  /** The channel as it is called in Redis. */
  readonly name: string
  /** What the script is told about it, behind its name. */
  readonly channelArguments: readonly string[]
}

export interface BroadcastBody {
  readonly body: string
  readonly version: number
  readonly versionEpoch: string
  readonly idempotencyKey: string
}

/**
 * Publishes to channels of one server: the body travels once, however many channels there are. Answers for each as
 * `PUBLISH_TO_MANY` does, or with an error. `Moved` says that nothing was published and the channel may be elsewhere.
 */
export const broadcastAt = async (
  shard: Shard,
  targets: readonly BroadcastTarget[],
  body: BroadcastBody
): Promise<readonly (string | EngineError)[]> => {
  const perCall = Math.min(MAX_CHANNELS_AT_ONCE, Math.max(1, Math.floor(MAX_CHARACTERS_AT_ONCE / body.body.length)))
  const { commands } = shard
  if (targets.length <= perCall) return publishAtOnce(shard, targets, body, '')
  // Named after a channel of this server, so that the key is there too.
  const bodyKey = `${targets[0]?.name}body:${randomUUID()}`
  try {
    await commands.send('set', [bodyKey, body.body, 'PX', String(BODY_KEPT_MS)])
  } catch (error) {
    const fault = faultOf(error)
    return targets.map(() => fault)
  }
  const answers: (string | EngineError)[] = []
  // One after the other: subscribers read what was published before, and other commands get their turn.
  for (const batch of inBatches(targets, perCall)) {
    for (const answer of await publishAtOnce(shard, batch, body, bodyKey)) answers.push(answer)
  }
  await deleteKey(commands, bodyKey)
  return answers
}

const publishAtOnce = async (
  { commands }: Shard,
  targets: readonly BroadcastTarget[],
  { body, version, versionEpoch, idempotencyKey }: BroadcastBody,
  bodyKey: string
): Promise<readonly (string | EngineError)[]> => {
  const args = [
    ...[bodyKey, bodyKey === '' ? body : ''],
    ...[String(body.length), String(version), versionEpoch, idempotencyKey]
  ]
  for (const { name, channelArguments } of targets) args.push(name, ...channelArguments)
  try {
    const answers = (await commands.runPublishScript(PUBLISH_TO_MANY, [], args)) as readonly string[]
    return answers.map((answer) => (answer.startsWith('e') ? scriptFault(answer.slice(1)) : answer))
  } catch (error) {
    const fault = faultOf(error)
    return targets.map(() => fault)
  }
}

/** Redis says so of a key whose slot is elsewhere, or on its way. */
const NOT_HERE = /non local key|MOVED|ASK|CLUSTERDOWN|TRYAGAIN/

const scriptFault = (message: string): EngineError =>
  NOT_HERE.test(message) ? new Moved(message) : new EngineError(message)

const faultOf = (error: unknown): EngineError => {
  if (!(error instanceof EngineError)) throw error
  return NOT_HERE.test(error.message) ? new Moved(error.message) : error
}

/** It ends by itself, where it cannot be deleted. */
const deleteKey = async (commands: CommandLink, key: string): Promise<void> => {
  try {
    await commands.send('del', [key])
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
  }
}

/** The indexes of channels by the server that keeps them; a fault for those that no server keeps. */
export const byShard = async (
  channels: readonly string[],
  shardOf: (channel: string) => Shard,
  refused: (index: number, fault: EngineError) => void
): Promise<ReadonlyMap<Shard, readonly number[]>> => {
  const shards = new Map<Shard, number[]>()
  const slice = new TimeSlice()
  for (const [index, channel] of channels.entries()) {
    if (slice.isOverAfterStep) await slice.next()
    try {
      const shard = shardOf(channel)
      const known = shards.get(shard)
      if (known === undefined) shards.set(shard, [index])
      else known.push(index)
    } catch (error) {
      refused(index, faultOf(error))
    }
  }
  return shards
}
