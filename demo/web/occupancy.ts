import type { Line } from './time-chart.js'
import type { Named, Occupancy } from './types.js'

/** The buildings of the floors, in their order. */
export const buildingsIn = ({ floors }: Occupancy): readonly Named[] => {
  const names = new Map(floors.map(({ buildingId, buildingName }) => [buildingId, buildingName]))
  return [...names].map(([id, name]) => ({ id, name }))
}

/** One line per building, or per floor of one building. */
export const occupancyLines = (occupancy: Occupancy, buildingId: string): readonly Line[] => {
  const { at, floors } = occupancy
  const floorsIn = (id: string) => floors.filter((floor) => floor.buildingId === id)
  if (buildingId !== '')
    return floorsIn(buildingId).map(({ floorName, people }) => ({ label: floorName, values: people }))
  return buildingsIn(occupancy).map(({ id, name }) => ({
    label: name,
    values: at.map((_, index) => sum(floorsIn(id).map(({ people }) => people[index] ?? null)))
  }))
}

/** Null if nothing was counted. */
const sum = (values: readonly (number | null)[]): number | null => {
  const counted = values.filter((value) => value !== null)
  return counted.length === 0 ? null : counted.reduce((total, value) => total + value, 0)
}
