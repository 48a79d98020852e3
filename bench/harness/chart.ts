import type { Latency } from './statistics.js'

export interface LatencyRow extends Latency {
  readonly name: string
}

const WIDTH = 760
const LEFT = 300
const RIGHT = 150
const TOP = 76
const ROW = 30
const BOTTOM = 40
const PLOT = WIDTH - LEFT - RIGHT

// The percentiles have three steps of one colour. The classes follow the reader's colour scheme.
const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #52514e; }
  .title { font-size: 15px; font-weight: 600; fill: #0b0b0b; }
  .name, .value { fill: #0b0b0b; }
  .value { font-variant-numeric: tabular-nums; }
  .ours { font-weight: 600; }
  .surface { fill: #fcfcfb; }
  .grid { stroke: #e1e0d9; }
  .range { stroke: #c3c2b7; stroke-width: 2; }
  circle { stroke: #fcfcfb; stroke-width: 2; }
  .p50 { fill: #86b6ef; } .p99 { fill: #2a78d6; } .p999 { fill: #104281; }
  @media (prefers-color-scheme: dark) {
    text { fill: #c3c2b7; }
    .title, .name, .value { fill: #ffffff; }
    .surface { fill: #1a1a19; }
    .grid { stroke: #2c2c2a; }
    .range { stroke: #52514e; }
    circle { stroke: #1a1a19; }
    .p50 { fill: #1c5cab; } .p99 { fill: #5598e7; } .p999 { fill: #cde2fb; }
  }
`

const PERCENTILES = [
  ['p50', 'p50'],
  ['p99', 'p99'],
  ['p999', 'p99.9']
] as const

/** An SVG dot plot of latencies in milliseconds on a logarithmic axis; the row of the first server is emphasised. */
export const latencyChart = (title: string, rows: readonly LatencyRow[]): string => {
  const height = TOP + rows.length * ROW + BOTTOM
  const values = rows.flatMap(({ p50, p99, p999 }) => [p50, p99, p999])
  const from = Math.floor(Math.log10(Math.min(...values)))
  const to = Math.max(from + 1, Math.ceil(Math.log10(Math.max(...values))))
  const x = (value: number): string => (LEFT + ((Math.log10(value) - from) / (to - from)) * PLOT).toFixed(1)
  const bottom = TOP + rows.length * ROW
  const ticks = Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}</style>`,
    `<rect class="surface" width="${WIDTH}" height="${height}" rx="8"/>`,
    `<text class="title" x="16" y="28">${escaped(title)}</text>`,
    ...PERCENTILES.flatMap(([name, label], index) => [
      `<circle class="${name}" cx="${24 + index * 70}" cy="50" r="6"/>`,
      `<text x="${36 + index * 70}" y="55">${label}</text>`
    ]),
    ...ticks.flatMap((tick) => [
      `<line class="grid" x1="${x(tick)}" x2="${x(tick)}" y1="${TOP - 8}" y2="${bottom}"/>`,
      `<text text-anchor="middle" x="${x(tick)}" y="${bottom + 20}">${tick} ms</text>`
    ]),
    ...rows.flatMap((row, index) => rowElements(row, index, x)),
    '</svg>',
    ''
  ].join('\n')
}

const rowElements = (row: LatencyRow, index: number, x: (value: number) => string): string[] => {
  const y = TOP + index * ROW + ROW / 2
  const values = PERCENTILES.map(([name]) => milliseconds(row[name])).join(' / ')
  return [
    `<text class="name${index === 0 ? ' ours' : ''}" text-anchor="end" x="${LEFT - 14}" y="${y + 4}">${escaped(row.name)}</text>`,
    `<line class="range" x1="${x(row.p50)}" x2="${x(row.p999)}" y1="${y}" y2="${y}"/>`,
    ...PERCENTILES.map(([name]) => `<circle class="${name}" cx="${x(row[name])}" cy="${y}" r="6"/>`),
    `<text class="value" text-anchor="end" x="${WIDTH - 16}" y="${y + 4}">${values}</text>`
  ]
}

/** Milliseconds with one decimal below 100. */
export const milliseconds = (value: number): string => value.toFixed(value < 100 ? 1 : 0)

/** Names have Markdown code marks, which an image does not show. */
const escaped = (text: string): string =>
  text.replaceAll('`', '').replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
