import { join } from 'node:path'
import { withTable } from '../page-table.js'
import { ROOT } from '../root.js'
import { type Costs, MEASURED } from './costs.js'
import { DEFAULT_DEMAND, type Demand, type Plan, planFor } from './plan.js'
import { planRows } from './plan-rows.js'

export const SCALING_PAGE = join(ROOT, 'docs/how-to/scale.md')

const MILLION = { ...DEFAULT_DEMAND, connections: 1_000_000, floors: 50_000, cores: 16, memoryGib: 64, networkGbit: 25 }
const TEN_MILLION = { ...MILLION, connections: 10_000_000, floors: 500_000, cores: 32, memoryGib: 128 }

const EXAMPLES: readonly Demand[] = [
  DEFAULT_DEMAND,
  { ...DEFAULT_DEMAND, connections: 100_000, floors: 5000, cores: 8, memoryGib: 16 },
  MILLION,
  { ...MILLION, isSorted: true },
  TEN_MILLION,
  { ...TEN_MILLION, isSorted: true }
]

/** Replaces the tables of the page with the current ones. */
export const withCurrentPlans = (page: string): string =>
  withTable(withTable(page, 'costs', costTable(MEASURED)), 'plans', planTable(EXAMPLES))

const COST_TEXTS: Readonly<Record<keyof Costs, string>> = {
  publishMicros: '`p`: a publish call that follows another one at once | µs of a relay core',
  wakeMicros: '`w`: a publish call after a long pause, in addition | µs of a relay core',
  pauseMs: '`h`: the pause after which half of `w` is spent | ms',
  deliveryMicros: '`d`: a delivery with a write of its own | µs of a relay core',
  coldMicros: '`x`: the same after a long pause of its connection, in addition | µs of a relay core',
  byteNanos: '`b`: a byte of a delivery | ns of a relay core',
  connectionMicros: '`n`: a connection for a second: pings | µs of a relay core',
  receiveMicros: '`r`: a publication from Redis, per relay process that has subscribers | µs of a relay core',
  redisPublishMicros: '`s`: the script call of a publish | µs of a Redis core',
  redisPushMicros: '`t`: a publication from Redis to one relay process | µs of a Redis core',
  connectMicros: '`c`: connect, token, subscribe, in a relay with workers | µs of a relay core',
  idleMib: '`i`: a relay process without clients | MiB',
  workMib: '`g`: the same while it publishes, in addition | MiB',
  connectionKib: '`m`: a subscribed connection | KiB of the process',
  kernelKib: '`k`: reserve for its buffers in the kernel | KiB'
}

const costTable = (costs: Costs): string =>
  [
    '| what | unit | |',
    '|---|---|---:|',
    // `Object.entries` types the names as string.
    ...Object.entries(COST_TEXTS).map(([name, text]) => `| ${text} | ${costs[name as keyof Costs]} |`)
  ].join('\n')

const planTable = (demands: readonly Demand[]): string => {
  const plans = demands.map((demand): readonly [Demand, Plan] => [demand, planFor(demand, MEASURED)])
  const columns = plans.map(([demand, plan]) => planRows(demand, plan))
  const names = columns[0]?.map(([name]) => name) ?? []
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [
    row(['', ...demands.map(({ isSorted }) => (isSorted ? 'sorted by floor' : ''))]),
    row(['---', ...demands.map(() => '---:')]),
    ...names.map((name, index) => row([name, ...columns.map((column) => column[index]?.[1] ?? '')]))
  ].join('\n')
}
