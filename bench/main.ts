import { gatewaySuite } from './gateway/suite.js'

// `npm run bench` runs all halves, `npm run bench -- gateway` one. The numbers are CPU time on this machine, so only those of
// one run can be compared with each other.
const SUITES = { gateway: gatewaySuite } as const

const [wanted, ...rest] = process.argv.slice(2)
const numberAfter = (flag: string, fallback: number): number => {
  const index = rest.indexOf(flag)
  return index === -1 ? fallback : Number(rest[index + 1])
}

for (const [name, suite] of Object.entries(SUITES)) {
  if (wanted !== undefined && wanted !== name) continue
  console.log(await suite({ rounds: numberAfter('--rounds', 5), requests: numberAfter('--requests', 10_000) }))
}
