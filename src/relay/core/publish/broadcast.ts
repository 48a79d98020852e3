import { type ResolvedChannel, resolveChannel } from '../channel-names.js'
import { ERROR_EMPTY_CHANNEL, ERROR_INTERNAL, ERROR_IS_MAP, ReplyError } from '../codes.js'
import { EngineError } from '../engine.js'
import type { ChannelOptions } from '../options.js'
import type { NewPublication, Published } from '../publication.js'
import type { TimeSlice } from '../time-slice.js'
import {
  cachedSchemaCheck,
  countPublished,
  inDataFormat,
  type PublishContext,
  publicationError,
  publishToChannel
} from './publish.js'

export type BroadcastOutcome = Published | ReplyError

/** A channel that passed all checks. */
interface CheckedChannel {
  readonly channel: string
  readonly resolved: ResolvedChannel
  readonly options: ChannelOptions
  /** In the data format of the channel's namespace. */
  readonly publication: NewPublication
  /** Index of its outcome. */
  readonly index: number
}

/**
 * The API's `broadcast` (one publication to many channels), not the fan-out, which is in `group.ts`. Publishes in time slices.
 * Outcomes are in the order of the channels; a channel that fails does not affect the others.
 */
export const broadcast = async (
  context: PublishContext,
  channels: readonly string[],
  publication: NewPublication,
  slice: TimeSlice
): Promise<readonly BroadcastOutcome[]> => {
  const check = cachedSchemaCheck(context, publication)
  const formats = new Map<ChannelOptions['publicationDataFormat'], NewPublication | ReplyError>()
  const outcomes: BroadcastOutcome[] = []
  const targets: CheckedChannel[] = []
  for (const [index, channel] of channels.entries()) {
    if (slice.isOverAfterStep) await slice.next()
    const resolved = channel === '' ? ERROR_EMPTY_CHANNEL : resolveChannel(channel, context.channelRules)
    if (resolved instanceof ReplyError) {
      outcomes.push(resolved)
      continue
    }
    const { options } = resolved
    if (options.map !== null) {
      outcomes.push(ERROR_IS_MAP)
      continue
    }
    // Converted once per format, not once per channel.
    const formatted = formats.get(options.publicationDataFormat) ?? inDataFormat(publication, options)
    formats.set(options.publicationDataFormat, formatted)
    const error = formatted instanceof ReplyError ? formatted : publicationError(options, check)
    outcomes.push(error ?? ERROR_INTERNAL)
    if (!(formatted instanceof ReplyError) && error === null)
      targets.push({ channel, resolved, options, publication: formatted, index })
  }
  if (context.broker.publishToMany === undefined) await publishEach(context, targets, outcomes, slice)
  else await publishTogether(context, targets, outcomes, slice)
  return outcomes
}

const publishEach = async (
  context: PublishContext,
  targets: readonly CheckedChannel[],
  outcomes: BroadcastOutcome[],
  slice: TimeSlice
): Promise<void> => {
  const pending: Promise<unknown>[] = []
  for (const { channel, resolved, publication, index } of targets) {
    if (slice.isOverAfterStep) await slice.next()
    const outcome = publishToChannel(context, resolved, channel, publication, () => null)
    const store = (result: BroadcastOutcome): void => {
      outcomes[index] = result
    }
    if (outcome instanceof Promise) pending.push(storeLater(outcome, store))
    else store(outcome)
  }
  const error = (await Promise.all(pending)).find((each) => each !== undefined)
  if (error !== undefined) throw error
}

/** Resolves with an unexpected error instead of rejecting, because it is awaited only after all slices. */
const storeLater = async (
  outcome: Promise<BroadcastOutcome>,
  store: (outcome: BroadcastOutcome) => void
): Promise<unknown> => {
  try {
    store(await outcome)
  } catch (error) {
    if (!(error instanceof EngineError)) return error
  }
  return undefined
}

/** Passes the publication to the engine once for each combination of data format and `delta_publish`. */
const publishTogether = async (
  context: PublishContext,
  targets: readonly CheckedChannel[],
  outcomes: BroadcastOutcome[],
  slice: TimeSlice
): Promise<void> => {
  for (const publication of new Set(targets.map((target) => target.publication))) {
    for (const delta of [false, true]) {
      const together = targets.filter(
        (target) => target.publication === publication && (publication.delta || target.options.deltaPublish) === delta
      )
      if (together.length === 0) continue
      const results = await context.broker.publishToMany?.(together, { ...publication, delta })
      for (const [position, { channel, resolved, index }] of together.entries()) {
        if (slice.isOverAfterStep) await slice.next()
        const result = results?.[position]
        if (result === undefined || result instanceof EngineError) continue
        countPublished(context, resolved, channel, result)
        outcomes[index] = result
      }
    }
  }
}
