import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withTable } from '../scripts/lib/page-table.js'
import { ROOT } from '../scripts/lib/root.js'
import type { Block, Capacity, Chart } from './harness/suite.js'
import { grouped, table } from './harness/table.js'

/** Each block has its markers on one of these pages. */
export const BENCHMARK_PAGES = ['benchmarks.md', 'benchmark-methods.md'].map((name) =>
  join(ROOT, 'docs/reference', name)
)
const IMAGES = join(ROOT, 'docs/images')

export const hasBlock = (page: string, name: string): boolean => page.includes(`<!-- bench: ${name} -->`)

/** Returns the page with the generated parts of these names replaced. Blocks of other pages are ignored. */
export const withBlocks = (page: string, blocks: readonly Block[]): string =>
  blocks
    .filter(({ name }) => hasBlock(page, name))
    .reduce((text, { name, markdown }) => withTable(text, `bench: ${name}`, `\n${markdown}\n`), page)

export const writePages = (blocks: readonly Block[], charts: readonly Chart[]): void => {
  for (const page of BENCHMARK_PAGES) writeFileSync(page, withBlocks(readFileSync(page, 'utf8'), blocks))
  for (const { file, svg } of charts) writeFileSync(join(IMAGES, file), svg)
}

const cell = (value: number | undefined): string => (value === undefined ? '–' : grouped(value))

/** The first table of the page: one row per server, from the readings of the gateway and relay suites. */
export const capacityTable = (capacities: readonly Capacity[]): string => {
  const servers = new Map<string, Capacity>()
  for (const capacity of capacities) servers.set(capacity.server, { ...servers.get(capacity.server), ...capacity })
  return table(
    ['', 'connections per GB', 'deliveries per second and core', 'requests per second and core'],
    [...servers.values()].map(({ server, connectionsPerGigabyte, deliveriesPerSecond, requestsPerSecond }) => [
      server,
      cell(connectionsPerGigabyte),
      cell(deliveriesPerSecond),
      cell(requestsPerSecond)
    ])
  )
}
