import { COST_NAMES, type CostName, type CpuCosts, cpuTerms, type RelayLoad } from './relay-cpu.js'

export interface CpuReading {
  readonly load: RelayLoad
  readonly cores: number
}

/** The lengths of a pause that are tried. */
const PAUSES_MS = Array.from({ length: 30 }, (_, index) => 0.1 * 1.33 ** index)

/** The costs that reproduce the readings with the smallest squares of relative errors. */
export const fitCpuCosts = (readings: readonly CpuReading[]): CpuCosts => {
  const candidates = PAUSES_MS.map((pauseMs) => ({ pauseMs, ...fitLinear(readings, pauseMs) }))
  const { pauseMs, costs } = candidates.reduce((best, each) => (each.error < best.error ? each : best))
  return { pauseMs, ...costs }
}

interface LinearFit {
  readonly costs: Record<CostName, number>
  readonly error: number
}

/** Linear least squares for a given pause. A cost below zero is noise, and is left out. */
const fitLinear = (readings: readonly CpuReading[], pauseMs: number): LinearFit => {
  // Relative errors: each row is divided by its reading.
  const rows = readings.map(({ load, cores }) => {
    const terms = cpuTerms(load, pauseMs)
    return COST_NAMES.map((name) => terms[name] / cores)
  })
  const isInLoads = (index: number): boolean => rows.some((row) => row[index] !== 0)
  let used = COST_NAMES.map((_, index) => index).filter(isInLoads)
  for (;;) {
    const solution = leastSquares(rows.map((row) => used.map((index) => row[index] ?? 0)))
    const positive = used.filter((_, at) => (solution[at] ?? 0) > 0)
    if (positive.length < used.length) {
      used = positive
      continue
    }
    const costs = COST_NAMES.map((_, index) => (used.includes(index) ? (solution[used.indexOf(index)] ?? 0) : 0))
    const error = rows.reduce((sum, row) => sum + (dot(row, costs) - 1) ** 2, 0)
    // `Object.fromEntries` types the names as string.
    return {
      costs: Object.fromEntries(COST_NAMES.map((name, index) => [name, costs[index]])) as Record<CostName, number>,
      error
    }
  }
}

const dot = (left: readonly number[], right: readonly number[]): number =>
  left.reduce((sum, value, index) => sum + value * (right[index] ?? 0), 0)

/** The solution of the normal equations of `rows · x = 1`. */
const leastSquares = (rows: readonly (readonly number[])[]): readonly number[] => {
  const count = rows[0]?.length ?? 0
  const columns = Array.from({ length: count }, (_, column) => rows.map((row) => row[column] ?? 0))
  const ones = rows.map(() => 1)
  return solve(columns.map((left) => [...columns.map((right) => dot(left, right)), dot(left, ones)]))
}

/** Gaussian elimination with pivoting. Each row is an equation, its last value the right-hand side. */
const solve = (equations: readonly (readonly number[])[]): readonly number[] => {
  const rows = equations.map((row) => [...row])
  for (let column = 0; column < rows.length; column++) {
    const pivot = rows.reduce(
      (best, row, index) =>
        index >= column && Math.abs(row[column] ?? 0) > Math.abs(rows[best]?.[column] ?? 0) ? index : best,
      column
    )
    const pivotRow = rows[pivot] ?? []
    rows[pivot] = rows[column] ?? []
    rows[column] = pivotRow
    for (const [index, row] of rows.entries()) {
      if (index === column) continue
      const factor = (row[column] ?? 0) / (pivotRow[column] ?? 1)
      for (let at = column; at < row.length; at++) row[at] = (row[at] ?? 0) - factor * (pivotRow[at] ?? 0)
    }
  }
  return rows.map((row, index) => (row.at(-1) ?? 0) / (row[index] ?? 1))
}
