import { hasHistory } from '../channel-names.js'
import type { HistoryRange } from '../engine.js'
import type { Channel } from '../fan-out/channel.js'
import type { MaybePromise } from '../maybe-promise.js'
import type { Position } from '../publication.js'
import { type RelayContext, runInBackground } from '../session/context.js'
import { hasPositions } from './subscribe-request.js'

const END_ONLY: HistoryRange = { since: null, limit: 0, reverse: false, isSubscribed: true }

/** Compares the positions of channels with their streams, at an interval and after a possible gap. Called periodically. */
export const checkPositions = (context: RelayContext, nowMs: number): void => {
  const { hub, broker, clientOptions } = context
  for (const channel of hub.channels.values()) {
    // Retry: subscribing failed while the engine was down.
    if (!channel.isSubscribedAtBroker) runInBackground(context, () => channel.subscribeAtBroker(broker))
    if (channel.checkedAt === 0) channel.checkedAt = nowMs
    if (!channel.mayHaveGap && nowMs - channel.checkedAt < clientOptions.positionCheckDelayMs) continue
    // While the engine responds slowly, another check would only add to its work.
    if (channel.isCheckingPosition) continue
    channel.checkedAt = nowMs
    if (channel.mayHaveGap) channel.clearIrrelevantGaps()
    // Publications without offsets, also after a reload that removed the history.
    if (channel.mayHaveGap && !hasCheckedPosition(channel)) channel.endAfterGap()
    if (!channel.needsPositionCheck || !hasCheckedPosition(channel)) continue
    const check = channel.startPositionCheck()
    runInBackground(context, async () => {
      try {
        channel.finishPositionCheck(await readEnd(context, channel), check)
      } finally {
        channel.isCheckingPosition = false
      }
    })
  }
}

const hasCheckedPosition = ({ options }: Channel): boolean =>
  options.map === null ? hasHistory(options) : hasPositions(options.map)

const readEnd = (
  { history, maps, metrics }: RelayContext,
  { name, namespace, options }: Channel
): MaybePromise<Position> => {
  if (options.map !== null) return maps.readStream(name, END_ONLY, options.map)
  metrics.engineAction('history_stream_top', namespace)
  return history.read(name, END_ONLY, options)
}
