import type { Framing } from '../codec/transport.js'
import { type CoreMetrics, count } from '../core-metrics.js'
import type { JoinOrLeave } from '../engine.js'
import type { Channel } from './channel.js'

/** Sends a join or leave push to the subscribers that want it. */
export const pushJoinOrLeave = (channel: Channel, kind: JoinOrLeave, info: string, metrics: CoreMetrics): void => {
  const { name, namespace } = channel
  const frames = new Map<Framing, Buffer>()
  for (const { wantsJoinLeave, isConfirmed, outbox } of channel.subscriptions()) {
    if (!wantsJoinLeave || !isConfirmed) continue
    const { framing } = outbox.transport
    const frame = frames.get(framing) ?? framing.frame(framing.codec.push({ kind, channel: name, info }))
    frames.set(framing, frame)
    count(metrics.sent(outbox.transport.name, `push_${kind}`, namespace), frame.length)
    outbox.send(frame)
  }
}
