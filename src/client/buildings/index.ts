// The public API of `gatehouse-client/buildings`: the built-in API and the live positions of people and things in buildings.

export type { AmbientBatch, AmbientEntry, PositionBatch, PositionEntry } from '../../../schemas/realtime.js'
export { isInView, type View } from '../realtime/view.js'
export { createBuildingApi } from './api/building-api.js'
export type { Download, UploadOptions } from './api/calls.js'
export type { Api } from './api/operations.js'
export { type BuildingClient, type BuildingClientOptions, createBuildingClient } from './building-client.js'
export type { Freshness, FreshnessChange } from './freshness.js'
export { Movement, type Point } from './movement.js'
export type { PositionEvents } from './position-events.js'
export { type LivePosition, PositionStore, type PositionStoreOptions } from './position-store.js'
export { Positions, type PositionsOptions } from './positions.js'
