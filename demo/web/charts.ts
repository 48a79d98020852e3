// The geometry of the charts: numbers in, coordinates out.

export interface Box {
  readonly width: number
  readonly height: number
}

/** A line through the values, from the left edge to the right one. */
export const linePath = (values: readonly number[], max: number, { width, height }: Box): string =>
  values
    .map((value, index) => {
      const x = values.length > 1 ? (index / (values.length - 1)) * width : width / 2
      return `${index === 0 ? 'M' : 'L'}${round(x)} ${round(height - (value / max) * height)}`
    })
    .join('')

/** The same line, closed along the bottom. */
export const areaPath = (values: readonly number[], max: number, box: Box): string =>
  values.length === 0 ? '' : `${linePath(values, max, box)}L${box.width} ${box.height}L0 ${box.height}Z`

export interface Column {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export const columnsOf = (values: readonly number[], max: number, { width, height }: Box, gap: number): Column[] => {
  const each = (width - gap * (values.length - 1)) / Math.max(values.length, 1)
  return values.map((value, index) => {
    const tall = (value / max) * height
    return { x: round(index * (each + gap)), y: round(height - tall), width: round(each), height: round(tall) }
  })
}

const round = (value: number): number => Math.round(value * 100) / 100

const HOUR_MS = 3_600_000

/** One entry for each hour from the first to the last, also for those in which nobody was there. */
export const byHour = (
  counts: readonly { readonly at: string; readonly people: number }[]
): readonly { readonly hour: string; readonly people: number }[] => {
  const people = new Map(counts.map((count) => [Math.floor(Date.parse(count.at) / HOUR_MS), count.people]))
  const first = Math.min(...people.keys())
  const hours = people.size === 0 ? 0 : Math.max(...people.keys()) - first + 1
  return Array.from({ length: hours }, (_, index) => ({
    hour: new Date((first + index) * HOUR_MS).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' }),
    people: people.get(first + index) ?? 0
  }))
}
