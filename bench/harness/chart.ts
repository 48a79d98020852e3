export interface Bar {
  readonly name: string
  readonly value: number
  readonly note: string
}

const WIDTH = 50

/** A bar chart in text; the longest bar has the full width. */
export const chart = (title: string, bars: readonly Bar[]): string => {
  const names = Math.max(...bars.map(({ name }) => name.length))
  const longest = Math.max(...bars.map(({ value }) => value))
  const lines = bars.map(({ name, value, note }) => {
    const length = Math.max(1, Math.round((value / longest) * WIDTH))
    return `${name.padEnd(names)}  ${'█'.repeat(length)} ${note}`
  })
  return [title, '', ...lines].join('\n')
}
