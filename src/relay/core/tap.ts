import type { Tap } from './channel.js'
import type { ChannelKind } from './channels.js'
import type { Context } from './context.js'
import { dropIfUnused, inBackground } from './leave-channel.js'

/** Listens to a channel beside its subscribers, until what is handed back is called. */
export const tapChannel = (context: Context, name: string, kind: ChannelKind, tap: Tap): (() => void) => {
  const channel = context.hub.open(name, kind)
  // Who only looks on must not disturb the delivery to subscribers.
  const contained: Tap = (publication) => inBackground(context, () => tap(publication))
  channel.addTap(contained)
  inBackground(context, () => channel.listen(context.broker))
  return () => {
    channel.removeTap(contained)
    dropIfUnused(context, channel)
  }
}
