import { parseIsoTime } from '../../../schemas/iso-time.js'
import { visits } from '../resources.js'
import type { World } from '../world.js'

/** In milliseconds: a time of a body is text, a stored one is a date. Not a number without a time. */
export const timeOf = (value: unknown): number =>
  value instanceof Date ? value.getTime() : typeof value === 'string' ? parseIsoTime(value) : Number.NaN

/** Why a visit cannot end at this time; null if it can, also if a time is not known. */
export const endError = (expectedFrom: unknown, expectedTo: unknown): string | null =>
  timeOf(expectedTo) <= timeOf(expectedFrom) ? 'must be after the beginning' : null

/** The transmitter of a visitor who becomes a contractor changes its kind too. */
export const followKind = async ({ database }: World, id: string, kind: string): Promise<void> => {
  const sql = 'UPDATE transmitters SET entity_type = $3 WHERE entity_type = ANY($1::text[]) AND entity_id = $2'
  await database.rows(sql, [visits.entityTypes, id, kind])
}
