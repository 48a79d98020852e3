import { gatewaySuite } from './gateway/suite.js'
import { relaySuite } from './relay/suite.js'

// `npm run bench` runs all halves, `npm run bench -- gateway` one. The numbers are CPU time on this machine, so only those of
// one run can be compared with each other.
const SUITES = { gateway: gatewaySuite, relay: relaySuite } as const

const [wanted, ...rest] = process.argv.slice(2)
const numberAfter = (flag: string, fallback: number): number => {
  const index = rest.indexOf(flag)
  return index === -1 ? fallback : Number(rest[index + 1])
}

const options = {
  rounds: numberAfter('--rounds', 5),
  requests: numberAfter('--requests', 10_000),
  seconds: numberAfter('--seconds', 3),
  connections: numberAfter('--connections', 10_000)
}

for (const [name, suite] of Object.entries(SUITES)) {
  if (wanted !== undefined && wanted !== name) continue
  console.log(await suite(options))
}
