import { hasHistory } from '../channel-names.js'
import type { HistoryRange } from '../engine.js'
import { type RelayContext, runInBackground } from '../session/context.js'

const END_ONLY: HistoryRange = { since: null, limit: 0, reverse: false }

/** Compares the positions of channels with the history, at an interval and after a possible gap. Called periodically. */
export const checkPositions = (context: RelayContext, nowMs: number): void => {
  const { hub, broker, history, clientOptions } = context
  for (const channel of hub.channels.values()) {
    // Retry: subscribing failed while the engine was down.
    if (!channel.isSubscribedAtBroker) runInBackground(context, () => channel.subscribeAtBroker(broker))
    if (channel.checkedAt === 0) channel.checkedAt = nowMs
    if (!channel.mayHaveGap && nowMs - channel.checkedAt < clientOptions.positionCheckDelayMs) continue
    // While the engine responds slowly, another check would only add to its work.
    if (channel.isCheckingPosition) continue
    channel.checkedAt = nowMs
    if (channel.mayHaveGap) channel.clearIrrelevantGaps()
    // A reload may have removed the history; publications have no offsets then.
    if (!channel.needsPositionCheck || !hasHistory(channel.options)) continue
    const check = channel.startPositionCheck()
    runInBackground(context, async () => {
      try {
        channel.finishPositionCheck(await history.read(channel.name, END_ONLY, channel.options), check)
      } finally {
        channel.isCheckingPosition = false
      }
    })
  }
}
