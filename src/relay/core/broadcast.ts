import type { NewPublication, Published } from './broker.js'
import { type ChannelKind, channelKind } from './channels.js'
import type { Context } from './context.js'
import { EngineFault } from './engine-fault.js'
import { BAD_REQUEST, INTERNAL, ReplyError } from './errors.js'
import type { ChannelOptions } from './options.js'
import { countPublished, publicationFault, publishOn, rememberingFaultFinder, withDelta } from './publish.js'
import type { Slices } from './slices.js'

export const EMPTY_CHANNEL = new ReplyError(
  BAD_REQUEST.code,
  `${BAD_REQUEST.message}: channels must not have an empty name`
)

export type Outcome = Published | ReplyError

/** Channels of one namespace, and where their outcomes belong. */
interface Group {
  readonly kind: ChannelKind
  readonly channels: string[]
  readonly indexes: number[]
}

/**
 * Publishes to many channels in slices, so that everybody else is served meanwhile. Outcomes are in the order of the channels;
 * a channel that fails does not hold up the others.
 */
export const broadcast = async (
  context: Context,
  channels: readonly string[],
  publication: NewPublication,
  slices: Slices
): Promise<readonly Outcome[]> => {
  const findFault = rememberingFaultFinder(context, publication)
  const outcomes: Outcome[] = []
  const pending: Promise<unknown>[] = []
  const groups = new Map<ChannelOptions, Group>()
  const isSentOnce = context.broker.publishToMany !== undefined
  for (const [index, channel] of channels.entries()) {
    if (slices.isOverAfterStep) await slices.next()
    const kind = channel === '' ? EMPTY_CHANNEL : channelKind(channel, context.channels)
    const refusal = kind instanceof ReplyError ? kind : publicationFault(kind.options, findFault)
    if (kind instanceof ReplyError || refusal !== null) outcomes.push(refusal ?? INTERNAL)
    else if (isSentOnce) {
      outcomes.push(INTERNAL)
      addTo(groups, kind, channel, index)
    } else {
      const outcome = publishOn(context, kind, channel, publication, () => null)
      outcomes.push(outcome instanceof Promise ? INTERNAL : outcome)
      if (outcome instanceof Promise) pending.push(settled(outcome, (known) => (outcomes[index] = known)))
    }
  }
  await Promise.all([...groups.values()].map((group) => publishGroup(context, group, publication, outcomes, slices)))
  const fault = (await Promise.all(pending)).find((each) => each !== undefined)
  if (fault !== undefined) throw fault
  return outcomes
}

const addTo = (groups: Map<ChannelOptions, Group>, kind: ChannelKind, channel: string, index: number): void => {
  let group = groups.get(kind.options)
  if (group === undefined) {
    group = { kind, channels: [], indexes: [] }
    groups.set(kind.options, group)
  }
  group.channels.push(channel)
  group.indexes.push(index)
}

const publishGroup = async (
  context: Context,
  { kind, channels, indexes }: Group,
  publication: NewPublication,
  outcomes: Outcome[],
  slices: Slices
): Promise<void> => {
  const published = await context.broker.publishToMany?.(channels, withDelta(publication, kind.options), kind.options)
  for (const [at, channel] of channels.entries()) {
    if (slices.isOverAfterStep) await slices.next()
    const result = published?.[at]
    if (result === undefined || result instanceof EngineFault) continue
    countPublished(context, kind, channel, result)
    outcomes[indexes[at] as number] = result
  }
}

/** Settles with an unexpected error, and never rejects: nobody looks at it before all slices are done. */
const settled = async (outcome: Promise<Outcome>, then: (outcome: Outcome) => void): Promise<unknown> => {
  try {
    then(await outcome)
  } catch (error) {
    if (!(error instanceof EngineFault)) return error
  }
  return undefined
}
