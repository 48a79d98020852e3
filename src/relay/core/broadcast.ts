import type { NewPublication, Published } from './broker.js'
import { EngineError } from './broker.js'
import { type ResolvedChannel, resolveChannel } from './channels.js'
import { ERROR_BAD_REQUEST, ERROR_INTERNAL, ReplyError } from './codes.js'
import type { RelayContext } from './context.js'
import type { ChannelOptions } from './options.js'
import { cachedSchemaCheck, countPublished, publicationFault, publishToChannel } from './publish.js'
import type { TimeSlice } from './time-slice.js'

export const EMPTY_CHANNEL = new ReplyError(
  ERROR_BAD_REQUEST.code,
  `${ERROR_BAD_REQUEST.message}: channels must not have an empty name`
)

export type PublishOutcome = Published | ReplyError

/** A channel that the engine is to publish to. */
interface Target {
  readonly channel: string
  readonly kind: ResolvedChannel
  readonly options: ChannelOptions
  /** Where its outcome belongs. */
  readonly index: number
}

/**
 * Publishes to many channels in slices, so that everybody else is served meanwhile. Outcomes are in the order of the channels;
 * a channel that fails does not hold up the others.
 */
export const broadcast = async (
  context: RelayContext,
  channels: readonly string[],
  publication: NewPublication,
  slice: TimeSlice
): Promise<readonly PublishOutcome[]> => {
  const findFault = cachedSchemaCheck(context, publication)
  const outcomes: PublishOutcome[] = []
  const targets: Target[] = []
  for (const [index, channel] of channels.entries()) {
    if (slice.isOverAfterStep) await slice.next()
    const kind = channel === '' ? EMPTY_CHANNEL : resolveChannel(channel, context.channelRules)
    const refusal = kind instanceof ReplyError ? kind : publicationFault(kind.options, findFault)
    outcomes.push(refusal ?? ERROR_INTERNAL)
    if (!(kind instanceof ReplyError) && refusal === null) targets.push({ channel, kind, options: kind.options, index })
  }
  if (context.broker.publishToMany === undefined) await publishEach(context, targets, publication, outcomes, slice)
  else await publishTogether(context, targets, publication, outcomes, slice)
  return outcomes
}

const publishEach = async (
  context: RelayContext,
  targets: readonly Target[],
  publication: NewPublication,
  outcomes: PublishOutcome[],
  slice: TimeSlice
): Promise<void> => {
  const pending: Promise<unknown>[] = []
  for (const { channel, kind, index } of targets) {
    if (slice.isOverAfterStep) await slice.next()
    const outcome = publishToChannel(context, kind, channel, publication, () => null)
    const note = (known: PublishOutcome): void => {
      outcomes[index] = known
    }
    if (outcome instanceof Promise) pending.push(settled(outcome, note))
    else note(outcome)
  }
  const fault = (await Promise.all(pending)).find((each) => each !== undefined)
  if (fault !== undefined) throw fault
}

/** Settles with an unexpected error, and never rejects: nobody looks at it before all slices are done. */
const settled = async (outcome: Promise<PublishOutcome>, then: (outcome: PublishOutcome) => void): Promise<unknown> => {
  try {
    then(await outcome)
  } catch (error) {
    if (!(error instanceof EngineError)) return error
  }
  return undefined
}

/** The engine is handed the publication once for all channels; twice where some namespaces publish deltas and others do not. */
const publishTogether = async (
  context: RelayContext,
  targets: readonly Target[],
  publication: NewPublication,
  outcomes: PublishOutcome[],
  slice: TimeSlice
): Promise<void> => {
  for (const delta of [false, true]) {
    const together = targets.filter(({ options }) => (publication.delta || options.deltaPublish) === delta)
    if (together.length === 0) continue
    const results = await context.broker.publishToMany?.(together, { ...publication, delta })
    for (const [at, { channel, kind, index }] of together.entries()) {
      if (slice.isOverAfterStep) await slice.next()
      const result = results?.[at]
      if (result === undefined || result instanceof EngineError) continue
      countPublished(context, kind, channel, result)
      outcomes[index] = result
    }
  }
}
