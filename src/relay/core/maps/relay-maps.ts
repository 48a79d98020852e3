import { resolveChannel } from '../channel-names.js'
import { ReplyError } from '../codes.js'
import type { MapAction } from '../core-metrics.js'
import { EngineError, type HistoryPage, type MapChanged, type MapRemoval, type MapWrite } from '../engine.js'
import type { MaybePromise } from '../maybe-promise.js'
import { type MapState, readMapState, readMapStream, type StateQuery, type StreamQuery } from './read-map.js'
import { asMap, type MapContext, type ResolvedMap, removeFromMap, writeToMap } from './write-map.js'

/** The maps of a relay, for the API: without permissions. Error 107 for a channel that is not a map. */
export class RelayMaps {
  readonly #context: MapContext
  #isExpiring = false

  constructor(context: MapContext) {
    this.#context = context
  }

  write(channel: string, write: MapWrite): MaybePromise<MapChanged | ReplyError> {
    const resolved = this.#resolve(channel)
    return resolved instanceof ReplyError ? resolved : writeToMap(this.#context, resolved, channel, write)
  }

  remove(channel: string, removal: MapRemoval): MaybePromise<MapChanged | ReplyError> {
    const resolved = this.#resolve(channel)
    return resolved instanceof ReplyError ? resolved : removeFromMap(this.#context, resolved, channel, removal)
  }

  /** Null if the entries are longer than `maxLength`. */
  async readState(query: StateQuery, maxLength: number): Promise<MapState | ReplyError | null> {
    const resolved = this.#resolveFor('map_state_read', query.channel)
    return resolved instanceof ReplyError ? resolved : readMapState(this.#context, resolved, query, maxLength)
  }

  async readStream(query: StreamQuery): Promise<HistoryPage | ReplyError> {
    const resolved = this.#resolveFor('map_stream_read', query.channel)
    return resolved instanceof ReplyError ? resolved : readMapStream(this.#context, resolved, query)
  }

  /** Number of keys. */
  async count(channel: string): Promise<number | ReplyError> {
    const resolved = this.#resolveFor('map_stats', channel)
    return resolved instanceof ReplyError ? resolved : this.#context.maps.count(channel, resolved.map)
  }

  async clear(channel: string): Promise<ReplyError | null> {
    const resolved = this.#resolveFor('map_clear', channel)
    if (resolved instanceof ReplyError) return resolved
    await this.#context.maps.clear(channel, resolved.map)
    return null
  }

  /** Removes expired keys. Called every `MAP_EXPIRY_INTERVAL_MS`. Never rejects. */
  async expire(): Promise<void> {
    const { channelRules, maps, metrics, log } = this.#context
    const { withoutNamespace, namespaces } = channelRules
    const hasMaps = withoutNamespace.map !== null || [...namespaces.values()].some(({ map }) => map !== null)
    if (!hasMaps || this.#isExpiring) return
    this.#isExpiring = true
    try {
      const { keys, lagMs } = await maps.expire()
      if (keys > 0) metrics.mapKeysExpired(keys, lagMs / 1000)
    } catch (error) {
      metrics.mapExpiryFailed()
      if (!(error instanceof EngineError)) {
        metrics.unexpectedError('background')
        log.error({ err: error }, 'expiry of map keys failed')
      }
    } finally {
      this.#isExpiring = false
    }
  }

  #resolve(channel: string): ResolvedMap | ReplyError {
    const resolved = resolveChannel(channel, this.#context.channelRules)
    return resolved instanceof ReplyError ? resolved : asMap(resolved)
  }

  #resolveFor(action: MapAction, channel: string): ResolvedMap | ReplyError {
    const resolved = this.#resolve(channel)
    if (!(resolved instanceof ReplyError)) this.#context.metrics.engineAction(action, resolved.namespace)
    return resolved
  }
}
