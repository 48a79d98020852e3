import type { Tap } from './channel.js'
import type { ChannelKind } from './channels.js'
import type { Context } from './context.js'
import { dropIfUnused, inBackground } from './leave-channel.js'

/** Listens to a channel beside its subscribers, until what is handed back is called. */
export const tapChannel = (context: Context, name: string, kind: ChannelKind, tap: Tap): (() => void) => {
  const channel = context.hub.open(name, kind)
  const isFirst = channel.isUnused
  channel.addTap(tap)
  if (isFirst) {
    inBackground(context, () => {
      channel.listening = context.broker.subscribe(name)
      return channel.listening
    })
  }
  return () => {
    channel.removeTap(tap)
    dropIfUnused(context, channel)
  }
}
