import { type LatencyRow, latencyChart, milliseconds } from './chart.js'
import type { Block, Chart } from './suite.js'
import { table } from './table.js'

export interface LatencyReport {
  readonly block: Block
  readonly charts: readonly Chart[]
}

interface Row extends LatencyRow {
  /** The cells of the additional columns. */
  readonly cells: readonly string[]
}

interface Section {
  readonly title: string
  /** The name of the chart's file. */
  readonly file: string
  /** Additional columns. */
  readonly columns: readonly string[]
  readonly rows: readonly Row[]
}

interface Report {
  /** The name of the block. */
  readonly name: string
  readonly facts: string
  readonly sections: readonly Section[]
}

/** A table and a chart for each section. */
export const latencyReport = ({ name, facts, sections }: Report): LatencyReport => ({
  block: {
    name,
    markdown: [
      facts,
      ...sections.flatMap(({ title, file, columns, rows }) => [
        table(
          [title, 'p50 ms', 'p99 ms', 'p99.9 ms', ...columns],
          rows.map((row) => [
            row.name,
            milliseconds(row.p50),
            milliseconds(row.p99),
            milliseconds(row.p999),
            ...row.cells
          ])
        ),
        `![${title}: latencies of the table above](../images/${file})`
      ])
    ].join('\n\n')
  },
  charts: sections.map(({ title, file, rows }) => ({ file, svg: latencyChart(title, rows) }))
})
