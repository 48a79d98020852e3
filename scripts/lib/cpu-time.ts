/** Preloaded into a test file's process: stores its CPU time when it ends. */
import { readFileSync, writeFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { savedCostOf } from './test-cost.js'

const TICKS_PER_SECOND = 100

/** CPU seconds of this process and of all processes that it started and that have ended. */
const cpuSeconds = (): number => {
  // The name of the program is in parentheses and may contain spaces.
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
  return ticks / TICKS_PER_SECOND
}

const [, script = ''] = process.argv
// Resolved now, because tests may change the working folder.
const output = resolve(savedCostOf(relative(process.cwd(), script)))
process.on('exit', () => {
  try {
    const seconds = process.uptime()
    writeFileSync(output, JSON.stringify({ seconds, cpuSeconds: cpuSeconds() }))
  } catch {
    // Without /proc the run has no costs, but is complete otherwise.
  }
})
