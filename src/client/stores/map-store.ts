import type { LiveMap, LiveMapOptions, MapState } from '../realtime/live-map.js'
import type { Realtime } from '../realtime/realtime.js'
import { createStore, type Store } from './store.js'

/** The state of a map channel for a component. */
export interface MapView<Value> {
  readonly entries: ReadonlyMap<string, Value>
  readonly state: MapState
}

const NO_ENTRIES: ReadonlyMap<string, never> = new Map<string, never>()

/** Follows a map channel; null for none. */
export const mapStore = <Value>(
  realtime: Realtime,
  channel: string | null,
  options: LiveMapOptions
): Store<MapView<Value>> =>
  createStore<MapView<Value>>({ entries: NO_ENTRIES, state: channel === null ? 'closed' : 'loading' }, (setState) => {
    if (channel === null) return () => undefined
    // The caller declares the type of the values.
    const map = realtime.map(channel, options) as unknown as LiveMap<Value>
    // A copy: the entries of a state must not change while a framework renders it.
    const update = (): void => setState({ entries: new Map(map), state: map.state })
    const removers = [map.onChange(update), map.onState(update)]
    update()
    return () => {
      for (const remove of removers) remove()
      map.close()
    }
  })
