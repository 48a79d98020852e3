import type { RouteLocationRaw } from 'vue-router'

/** A place on the live plan: a floor, and what to select there. */
export interface Place {
  readonly floorId: string
  readonly transmitterId?: string | null
  readonly receiverId?: string | null
  readonly zoneId?: string | null
}

/** The link to a place on the live plan. The first of transmitter, receiver and zone is selected. */
export const liveLink = ({ floorId, transmitterId, receiverId, zoneId }: Place): RouteLocationRaw => {
  const path = `/live/${floorId}`
  if (transmitterId) return { path, query: { selected: transmitterId } }
  if (receiverId) return { path, query: { receiver: receiverId } }
  return zoneId ? { path, query: { zone: zoneId } } : { path }
}
