import { gatewaySuite } from './gateway/suite.js'
import { relaySuite } from './relay/suite.js'

// `npm run bench` runs all halves, `npm run bench -- gateway` one. The numbers are CPU time on this machine, so only those of
// one run can be compared with each other.
const SUITES = { gateway: gatewaySuite, relay: relaySuite } as const

const [wanted, ...rest] = process.argv.slice(2)
const numberAfter = (flag: string): number | undefined => {
  const index = rest.indexOf(flag)
  return index === -1 ? undefined : Number(rest[index + 1])
}

const options = {
  rounds: numberAfter('--rounds'),
  requests: numberAfter('--requests'),
  seconds: numberAfter('--seconds'),
  connections: numberAfter('--connections')
}

for (const [name, suite] of Object.entries(SUITES)) {
  if (wanted !== undefined && wanted !== name) continue
  console.log(await suite(options))
}
