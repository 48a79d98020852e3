import type { Occupancy } from './types.js'

/** A line of a chart, with a value for each time; null where there is none. */
export interface Line {
  readonly label: string
  readonly values: readonly (number | null)[]
}

/** One line per building: the sum of its floors, or null if nothing was counted. */
export const occupancyLines = ({ at, floors }: Occupancy): readonly Line[] =>
  [...new Set(floors.map(({ buildingName }) => buildingName))].map((label) => ({
    label,
    values: at.map((_, index) => {
      const counts = floors
        .filter(({ buildingName }) => buildingName === label)
        .flatMap(({ people }) => people[index] ?? [])
      return counts.length === 0 ? null : counts.reduce((total, count) => total + count, 0)
    })
  }))
