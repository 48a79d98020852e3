/** `npm run bench`: CPU time of gateway and relay beside other servers. Only the figures of one run can be compared. */
import { parseArgs } from 'node:util'
import { runCommand, UsageError } from '../scripts/lib/command.js'
import { gatewaySuite } from './gateway/suite.js'
import { liveStateSuite } from './relay/live-state.js'
import { soakSuite } from './relay/soak.js'
import { stormSuite } from './relay/storm.js'
import { relaySuite } from './relay/suite.js'

const USAGE =
  'Usage: npm run bench [-- [gateway|relay|live-state|storm|soak] [--rounds <n>] [--requests <n>] [--seconds <n>] [--connections <n>] [--minutes <n>]]'

const SUITES = {
  gateway: gatewaySuite,
  relay: relaySuite,
  'live-state': liveStateSuite,
  storm: stormSuite,
  soak: soakSuite
} as const

/** Suites that run only if they are named, because they take long. */
const ON_REQUEST: ReadonlySet<string> = new Set(['soak'])

const main = async (args: readonly string[]): Promise<number> => {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      requests: { type: 'string' },
      seconds: { type: 'string' },
      connections: { type: 'string' },
      minutes: { type: 'string' }
    },
    allowPositionals: true
  })
  for (const name of positionals) if (!Object.hasOwn(SUITES, name)) throw new UsageError(`there is no suite ${name}`)
  const numberOf = (name: keyof typeof values): number | undefined => {
    const text = values[name]
    if (text === undefined) return undefined
    if (!(Number(text) > 0)) throw new UsageError(`--${name} must be a number above 0, not ${text}`)
    return Number(text)
  }
  const options = {
    rounds: numberOf('rounds'),
    requests: numberOf('requests'),
    seconds: numberOf('seconds'),
    connections: numberOf('connections'),
    minutes: numberOf('minutes')
  }
  for (const [name, suite] of Object.entries(SUITES))
    if (positionals.length === 0 ? !ON_REQUEST.has(name) : positionals.includes(name)) console.log(await suite(options))
  return 0
}

await runCommand(USAGE, main)
