import type { MapSubscription, MapSyncContext, MapUpdateContext } from 'centrifuge'
import type { EdgeRelay } from './relay.js'

/** What an application shows that follows a map with the events of the official client. */
export class ShownMap {
  readonly entries = new Map<string, unknown>()
  readonly syncs: MapSyncContext[] = []
  readonly updates: MapUpdateContext[] = []

  constructor(subscription: MapSubscription, decode: (data: unknown) => unknown) {
    const on = subscription.on.bind(subscription) as (name: string, listener: (context: never) => void) => void
    on('sync', (context: MapSyncContext) => {
      this.syncs.push(context)
      this.entries.clear()
      for (const { key, data } of context.entries) this.entries.set(key, decode(data))
    })
    on('update', (context: MapUpdateContext) => {
      this.updates.push(context)
      if (context.removed) this.entries.delete(context.key)
      else this.entries.set(context.key, decode(context.data))
    })
  }

  get state(): Readonly<Record<string, unknown>> {
    return Object.fromEntries([...this.entries].sort(([one], [other]) => (one < other ? -1 : 1)))
  }
}

/** Changes and reads a map through the API. */
export const mapPublisher = ({ api }: EdgeRelay, channel: string) => {
  const call = async (method: string, params: Record<string, unknown>) =>
    JSON.parse((await api(method, { channel, ...params })).body)
  return {
    write: (key: string, data: unknown, more = {}) => call('map_publish', { key, data, ...more }),
    remove: (key: string) => call('map_remove', { key }),
    clear: () => call('map_clear', {}),
    entries: async () => {
      const { result } = await call('map_read_state', { limit: -1 })
      return Object.fromEntries((result.entries ?? []).map(({ key, data }: MapUpdateContext) => [key, data]).sort())
    }
  }
}

/** Writes this many entries in one request. */
export const writeMany = async ({ api }: EdgeRelay, channel: string, count: number): Promise<void> => {
  const commands = Array.from({ length: count }, (_, index) => ({
    map_publish: { channel, key: `k${String(index).padStart(3, '0')}`, data: { index } }
  }))
  await api('batch', { commands })
}
