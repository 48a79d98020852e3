/**
 * Runs the compiled test files in its arguments one after the other, prints their TAP and stores their cost. In one process,
 * because loading the gateway or the relay takes longer than most files.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { savedCostOf, type TestCost } from './test-cost.js'

const TICKS_PER_SECOND = 100

/** The cost of this process and of all processes that it started and that have ended. */
const costSoFar = (): TestCost => {
  try {
    // The name of the program is in parentheses and may contain spaces.
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    return { seconds: process.uptime(), cpuSeconds: ticks / TICKS_PER_SECOND }
  } catch {
    // A system without /proc.
    return { seconds: process.uptime(), cpuSeconds: 0 }
  }
}

// tap makes the names of its temporary folders of all arguments, which would be too long.
const files = process.argv.splice(2)
const { runTestFile } = await import('./file-test.js')

let before: TestCost = { seconds: 0, cpuSeconds: 0 }
for (const file of files) {
  await runTestFile(file)
  const { seconds, cpuSeconds } = costSoFar()
  const output = savedCostOf(file)
  mkdirSync(dirname(output), { recursive: true })
  writeFileSync(
    output,
    JSON.stringify({ seconds: seconds - before.seconds, cpuSeconds: cpuSeconds - before.cpuSeconds })
  )
  before = { seconds, cpuSeconds }
}
