import { readFileSync } from 'node:fs'

/** Time of a test file. */
export interface TestCost {
  readonly seconds: number
  /** CPU time of its process and of the processes that it started. */
  readonly cpuSeconds: number
}

/** The folder for what test files leave behind: their TAP and their cost. */
export const TEST_RESULTS = '.tap/test-results'

/** Where a test file's cost is stored when it ends. */
export const savedCostOf = (file: string): string => `${TEST_RESULTS}/${file}.json`

/** Reads the stored costs; files without one, such as those that were killed, are omitted. */
export const savedCosts = (files: readonly string[]): ReadonlyMap<string, TestCost> =>
  new Map(
    files.flatMap((file): [string, TestCost][] => {
      try {
        // Written by `cpu-time.ts`.
        return [[file, JSON.parse(readFileSync(savedCostOf(file), 'utf8')) as TestCost]]
      } catch {
        return []
      }
    })
  )

const MOST_EXPENSIVE = 10

/** Lines that name the most expensive files and the CPU time of all. */
export const costReport = (costs: ReadonlyMap<string, TestCost>, nameOf: (file: string) => string): string[] => {
  if (costs.size === 0) return []
  const byCost = [...costs].toSorted(([, a], [, b]) => b.cpuSeconds - a.cpuSeconds)
  const total = byCost.reduce((sum, [, { cpuSeconds }]) => sum + cpuSeconds, 0)
  return [
    `CPU time of all test files: ${minutes(total)}. The most expensive ones (CPU, time):`,
    ...byCost.slice(0, MOST_EXPENSIVE).map(([file, { cpuSeconds, seconds }]) => {
      const figures = [cpuSeconds, seconds].map((value) => `${Math.round(value)} s`.padStart(6))
      return `${figures.join('')}  ${nameOf(file)}`
    })
  ]
}

/** `14 min 5 s` */
export const minutes = (seconds: number): string => {
  const rounded = Math.round(seconds)
  return `${Math.floor(rounded / 60)} min ${rounded % 60} s`
}
