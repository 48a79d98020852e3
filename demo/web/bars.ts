export interface Bar {
  readonly label: string
  readonly value: number
}

const HOUR_MS = 3_600_000
const HOUR = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })

/** One bar for each hour from the first to the last, including hours without people. */
export const byHour = (counts: readonly { readonly at: string; readonly people: number }[]): readonly Bar[] => {
  const people = new Map(counts.map((count) => [Math.floor(Date.parse(count.at) / HOUR_MS), count.people]))
  const first = Math.min(...people.keys())
  const hours = people.size === 0 ? 0 : Math.max(...people.keys()) - first + 1
  return Array.from({ length: hours }, (_, index) => ({
    label: HOUR.format((first + index) * HOUR_MS),
    value: people.get(first + index) ?? 0
  }))
}
