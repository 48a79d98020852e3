/** `npm run bench`: CPU time, memory and latency of gateway and relay beside other servers. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { print, runCommand, UsageError } from '../scripts/lib/command.js'
import { installNode } from '../scripts/lib/node-version.js'
import { gatehouseVersion, machineReport } from './harness/machine.js'
import { installPeerPackages } from './harness/peer-packages.js'
import type { Block, Suite, SuiteResult } from './harness/suite.js'
import { capacityTable, writePages } from './page.js'
import { SUITES } from './suites.js'

const ON_REQUEST = Object.keys(SUITES).filter((name) => SUITES[name]?.isOnRequest)

const USAGE = `Usage: npm run bench [-- [<suite> ...] [options]]

Suites: ${Object.keys(SUITES).join(', ')}; all but ${ON_REQUEST.join(', ')} by default. Only the figures of one run can be compared.

  --quick            short readings: about two minutes for all suites
  --rounds <n>       readings of each server; in the suite gateway, of each of its starts
  --seconds <n>      duration of a reading
  --requests <n>     requests of a reading of the gateway
  --connections <n>  connections of the reading of memory
  --machine <file>   capacity writes the costs of this machine into the file; scale compares with them
  --node <version>   run on Node.js 20, 22, 24 or 26, installed from the npm package "node" into node_modules/.cache
  --docs             write the tables and charts into docs/reference/benchmarks.md, benchmark-methods.md and docs/images`

const OPTIONS = {
  quick: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  seconds: { type: 'string' },
  requests: { type: 'string' },
  connections: { type: 'string' },
  machine: { type: 'string' },
  node: { type: 'string' },
  docs: { type: 'boolean', default: false }
} as const

const main = async (args: readonly string[]): Promise<number> => {
  const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true })
  const suites =
    positionals.length === 0 ? Object.values(SUITES).filter((each) => !each.isOnRequest) : positionals.map(suiteOf)
  const numberOf = (name: 'rounds' | 'seconds' | 'requests' | 'connections'): number | undefined => {
    const text = values[name]
    if (text === undefined) return undefined
    if (!(Number(text) > 0)) throw new UsageError(`--${name} must be a number above 0, not ${text}`)
    return Number(text)
  }
  const options = {
    rounds: numberOf('rounds'),
    seconds: numberOf('seconds'),
    requests: numberOf('requests'),
    connections: numberOf('connections'),
    machineFile: values.machine,
    isQuick: values.quick
  }
  if (values.node !== undefined) return runOn(values.node, args)

  installPeerPackages()
  const results: SuiteResult[] = []
  const version = gatehouseVersion()
  const machine = { name: 'machine', markdown: machineReport() }
  print(machine.markdown)
  for (const suite of suites) {
    const result = await suite.run(options)
    for (const { name, markdown } of result.blocks) print(`\n## ${name}\n\n${markdown}`)
    results.push(result)
  }
  const overview = overviewOf(results)
  for (const { name, markdown } of overview) print(`\n## ${name}\n\n${markdown}`)
  if (values.docs) {
    const rest = args.filter((each) => each !== '--docs')
    const command = ['npm run bench', ...(rest.length === 0 ? [] : ['--', ...rest])].join(' ')
    const source = `Measured by \`${command}\` on Node.js ${process.version}, Gatehouse ${version}.`
    const blocks = [...overview, ...results.flatMap((result) => result.blocks)].map(({ name, markdown }) => ({
      name,
      markdown: `${source}\n\n${markdown}`
    }))
    // Single suites keep the machine of the last complete run, which has measured most blocks.
    const isComplete = positionals.length === 0
    writePages(
      isComplete ? [machine, ...blocks] : blocks,
      results.flatMap(({ charts = [] }) => charts)
    )
  }
  return 0
}

const suiteOf = (name: string): Suite => {
  const suite = Object.hasOwn(SUITES, name) ? SUITES[name] : undefined
  if (suite === undefined) throw new UsageError(`there is no suite ${name}`)
  return suite
}

/** The table needs the readings of the gateway and of the relay. */
const overviewOf = (results: readonly SuiteResult[]): Block[] => {
  const capacities = results.flatMap((result) => result.capacities ?? [])
  const isComplete = results.filter((result) => result.capacities !== undefined).length > 1
  return isComplete ? [{ name: 'overview', markdown: capacityTable(capacities) }] : []
}

/** Runs this script with another version of Node.js, which then also starts the servers. */
const runOn = (version: string, args: readonly string[]): number => {
  const node = join(installNode(version, process.env, print), 'node')
  const index = args.findIndex((each) => each.startsWith('--node'))
  const rest = args.toSpliced(index, args[index]?.includes('=') ? 1 : 2)
  // The first argument of the process is the path of this script.
  const { status } = spawnSync(node, [process.argv[1] as string, ...rest], { stdio: 'inherit' })
  return status ?? 1
}

await runCommand(USAGE, main)
