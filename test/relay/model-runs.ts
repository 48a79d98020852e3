import fc from 'fast-check'
import type { Test } from 'tap'
import { environment } from '../helper/environment.js'

/** Runs random interleavings, this many at the same time, and reports the first differences from the model. */
export const runModel = async <Interleaving>(
  t: Test,
  interleavings: fc.Arbitrary<Interleaving>,
  { runs, parallel }: { readonly runs: number; readonly parallel: number },
  run: (interleaving: Interleaving) => Promise<string | null>
): Promise<void> => {
  const seed = environment.modelSeed ?? Math.floor(Math.random() * 2 ** 31)
  const waiting = fc.sample(interleavings, { numRuns: runs, seed })
  const failures: string[] = []
  const worker = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined && failures.length === 0; next = waiting.pop()) {
      const difference = await run(next)
      if (difference !== null) failures.push(`${difference} after ${JSON.stringify(next)}`)
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))

  t.same(failures.slice(0, 3), [], `${runs} interleavings agree with the model, MODEL_SEED=${seed}`)
}

/** Rate timers run a hundred times as fast. */
export const FAST_TIMERS = {
  setTimer: (task: () => void, ms: number): (() => void) => {
    const timer = setTimeout(task, ms / 100)
    return () => clearTimeout(timer)
  }
}
