import { readFileSync } from 'node:fs'
import t from 'tap'
import { latencyChart } from '../../bench/harness/chart.js'
import { machineReport } from '../../bench/harness/machine.js'
import { pace } from '../../bench/harness/pace.js'
import { latencyPercentiles } from '../../bench/harness/statistics.js'
import { goalTable } from '../../bench/harness/table.js'
import { BENCHMARK_PAGES, capacityTable, hasBlock, withBlocks } from '../../bench/page.js'
import { centrifugoConfig } from '../../bench/relay/centrifugo.js'
import { SUITES } from '../../bench/suites.js'
import DEFAULT_CONFIG from '../relay/centrifugo-defaultconfig.json' with { type: 'json' }
import { configWith } from '../relay/config-fixture.js'

delete process.env.CENTRIFUGO_BIN

const pages = BENCHMARK_PAGES.map((file) => readFileSync(file, 'utf8'))

t.test('the benchmark pages have one part for every block of every suite', async (t) => {
  for (const name of Object.values(SUITES).flatMap(({ blocks }) => blocks)) {
    const [page = '', ...others] = pages.filter((text) => hasBlock(text, name))
    t.match(withBlocks(page, [{ name, markdown: 'replaced' }]), /\nreplaced\n/, name)
    t.same(others, [], name)
  }
})

t.test('the benchmark pages have the tables of the suites that always run', async (t) => {
  const suites = Object.values(SUITES).filter(({ isOnRequest }) => !isOnRequest)
  for (const name of ['overview', ...suites.flatMap(({ blocks }) => blocks)]) {
    const page = pages.find((text) => hasBlock(text, name)) ?? ''
    const part = page.slice(page.indexOf(`<!-- bench: ${name} -->`), page.indexOf(`<!-- end of bench: ${name} -->`))
    t.match(part, /^\|-+/m, name)
  }
})

t.test('the machine report names the version of Node.js and the missing peers', async (t) => {
  const report = machineReport()
  t.match(report, process.version)
  t.match(report, /\bws \d/)
  t.match(report, /^- not installed: .*Centrifugo \(CENTRIFUGO_BIN\)$/m)
})

t.test('the first table merges the readings of gateway and relay', async (t) => {
  const text = capacityTable([
    { server: 'Gatehouse', requestsPerSecond: 10_500.4 },
    { server: 'express', requestsPerSecond: 5900 },
    { server: 'Gatehouse', connectionsPerGigabyte: 160_000, deliveriesPerSecond: 400_000 }
  ])
  t.match(text, /\| Gatehouse \| +160,000 \| +400,000 \| +10,500 \|/)
  t.match(text, /\| express +\| +– \| +– \| +5,900 \|/)
})

t.test('a missed goal is bold', async (t) => {
  const goal = { what: 'x', atMost: 1, unit: '' }
  t.match(goalTable([{ ...goal, measured: 1.1 }]), '**1.10**')
  t.notMatch(goalTable([{ ...goal, measured: 1 }]), '**')
})

t.test('a measured value that rounds to its goal has three digits', async (t) => {
  const goal = { what: 'x', atMost: 1, unit: '' }
  t.match(goalTable([{ ...goal, measured: 1.004 }]), /\*\*1\.004\*\* +\| +1\.000 \|/)
  t.match(goalTable([{ ...goal, measured: 0.996 }]), /\| +0\.996 +\| +1\.000 \|/)
  t.match(goalTable([{ ...goal, measured: 1 }]), /\| +1\.00 +\| +1\.00 \|/)
})

t.test('percentiles of 1,000 latencies', async (t) => {
  const latencies = Array.from({ length: 1000 }, (_, index) => 1000 - index)
  t.same(latencyPercentiles(latencies), { p50: 501, p99: 991, p999: 1000 })
})

t.test('the pace sends every call with its intended time, also those that are late', async (t) => {
  const times: number[] = []
  await new Promise<void>((resolve) => {
    pace({ perSecond: 10_000, calls: 50 }, (intendedAt) => {
      times.push(intendedAt)
      // Blocks for longer than the interval, so that later calls are late.
      if (times.length === 10) for (const end = performance.now() + 2; performance.now() < end; );
      if (times.length === 50) resolve()
    })
  })
  t.same(
    times.map((time) => Math.round((time - (times[0] ?? 0)) * 10)),
    Array.from({ length: 50 }, (_, index) => index)
  )
})

t.test('the chart has a dot for each percentile of each server and both colour schemes', async (t) => {
  const svg = latencyChart('A & B', [
    { name: 'relay', p50: 1, p99: 5, p999: 20 },
    { name: '`a < b`', p50: 2, p99: 150, p999: 3000 }
  ])
  const legend = 3
  t.equal(svg.match(/<circle /g)?.length, legend + 6)
  t.match(svg, '>a &lt; b</text>')
  t.match(svg, '>2.0 / 150 / 3000</text>')
  t.match(svg, 'A &amp; B')
  t.match(svg, '@media (prefers-color-scheme: dark)')
})

t.test('the configuration for Centrifugo has only options of Centrifugo', async (t) => {
  const isKnown = (value: object, known: object, path: string): void => {
    for (const [name, option] of Object.entries(value)) {
      t.hasOwnProp(known, name, `${path}${name}`)
      if (typeof option === 'object' && !Array.isArray(option)) {
        isKnown(option, Object(known)[name], `${path}${name}.`)
      }
    }
  }
  isKnown(centrifugoConfig(8000), DEFAULT_CONFIG, '')
})

t.test('the relay accepts the configuration for Centrifugo', async (t) => {
  t.doesNotThrow(() => configWith(centrifugoConfig(8000)))
})
