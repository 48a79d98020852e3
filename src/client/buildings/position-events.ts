import type { AmbientBatch, PositionBatch } from '../../../schemas/realtime.js'
import type { OtherPublication } from './batches.js'
import type { FreshnessChange } from './freshness.js'
import type { LivePosition } from './position-store.js'

export interface PositionEvents {
  /**
   * Without entries that are older than the stored position of their transmitter. The floor is null for a batch on `global:all`,
   * whose entries may be on different floors.
   */
  'position-batch': PositionBatch & { readonly floorId: string | null }
  'ambient-batch': AmbientBatch
  /** A publication with another `type`, for messages of the application. Only its `type` has been checked. */
  publication: { readonly channel: string; readonly data: OtherPublication }
  /** The positions of a watched floor became live, stale or unknown. */
  freshness: FreshnessChange
  /** A transmitter had no update for `maxAgeMs`, or has left the view of its floor; with its last position. */
  removed: LivePosition
  /** Publications of this channel are lost: the web application should load its data again. */
  gap: { readonly channel: string }
}
