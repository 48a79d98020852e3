/** A Markdown table with a left-aligned first column and right-aligned others. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`
  const rule = `|${widths.map((width, column) => (column === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`
  return [line(head), rule, ...rows.map(line)].join('\n')
}

export interface Goal {
  readonly what: string
  readonly measured: number
  readonly atMost: number
  readonly unit: string
}

/** Missed goals are bold. A third digit tells measured value and goal apart that two digits would show as equal. */
export const goalTable = (goals: readonly Goal[]): string =>
  table(
    ['ratio', 'measured', 'goal: at most'],
    goals.map(({ what, measured, atMost, unit }) => {
      const digits = measured !== atMost && measured.toFixed(2) === atMost.toFixed(2) ? 3 : 2
      const text = `${measured.toFixed(digits)}${unit}`
      return [what, measured <= atMost ? text : `**${text}**`, `${atMost.toFixed(digits)}${unit}`]
    })
  )

/** A number with thousands separators. */
export const grouped = (value: number): string => Math.round(value).toLocaleString('en-US')

/** Such as "9 rounds" or "1 round". */
export const roundsText = (rounds: number): string => `${rounds} ${rounds === 1 ? 'round' : 'rounds'}`
