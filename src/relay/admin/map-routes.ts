import { Type } from '@sinclair/typebox'
import { ReplyError } from '../core/codes.js'
import type { MapOptions } from '../core/options.js'
import type { Publication } from '../core/publication.js'
import type { MapPage, MapRow } from './contract.js'
import type { AdminCall } from './guard.js'
import { livePublication } from './live.js'
import { requestedChannel } from './requested-channel.js'
import type { RouteDependencies } from './route-dependencies.js'

const PAGE_SIZE = 50
/** More than the previews of a page can contain. */
const MAX_PAGE_LENGTH = 64 * 1024 * 1024

/** The entries of a map after a key, or the one entry of a search. */
export const sendMap =
  ({ relay }: RouteDependencies) =>
  async (call: AdminCall): Promise<void> => {
    const channel = requestedChannel(call, 'channel', relay)
    if (channel === null) return
    const [name, { options }] = channel
    if (options.map === null) {
      call.reject(404, 'NOT_A_MAP', 'The channel is not a map.')
      return
    }
    const query = { channel: name, cursor: call.query.get('after') ?? '', limit: PAGE_SIZE, revisionEpoch: null }
    const [state, total] = await Promise.all([
      relay.maps.readState({ ...query, key: call.query.get('key') ?? '' }, MAX_PAGE_LENGTH),
      relay.maps.count(name)
    ])
    if (state === null || state instanceof ReplyError || total instanceof ReplyError) {
      call.reject(503, 'NOT_READABLE', 'The map cannot be read at the moment.')
      return
    }
    const { map, subscriptionType } = options
    const page: MapPage = {
      mode: map.mode,
      total,
      rows: state.entries.map((entry) => mapRow(name, entry, subscriptionType === 'map' ? map : null)),
      next: state.cursor
    }
    call.json(page)
  }

/** The entries of presence maps are renewed without a write, so the time of their expiry is not known. */
const mapRow = (channel: string, entry: Publication, map: MapOptions | null): MapRow => ({
  ...livePublication(channel, entry),
  key: entry.key ?? '',
  version: entry.version,
  expiresAt: map === null || map.keyTtlMs === 0 ? null : entry.time + map.keyTtlMs
})

const REMOVAL = Type.Object(
  { channel: Type.String({ minLength: 1, maxLength: 1024 }), key: Type.String({ minLength: 1, maxLength: 1024 }) },
  { additionalProperties: false }
)
const MAX_REMOVAL_BYTES = 16 * 1024

export const removeKey =
  ({ relay, log }: RouteDependencies) =>
  (call: AdminCall): Promise<void> =>
    call.body(REMOVAL, MAX_REMOVAL_BYTES, async ({ channel, key }) => {
      const outcome = await relay.maps.remove(channel, { key, idempotencyKey: '' })
      if (outcome instanceof ReplyError) {
        call.reject(400, 'REMOVAL_REJECTED', outcome.message)
        return
      }
      if (outcome.suppressedBy !== null) {
        call.reject(404, 'NOT_IN_MAP', 'The key is not in the map any more.')
        return
      }
      log.info({ ip: call.address, channel, key }, 'admin removal of a map key')
      call.noContent()
    })
