import { KeptProgram } from './kept-program.js'
import type { ProgramCommand } from './running-program.js'

export interface RunTogetherOptions {
  readonly print: (line: string) => void
  /** Called when all programs answer, and when one that was started again answers. */
  readonly onReady: () => void
  /** Resolves when the programs shall stop. */
  readonly stopped: Promise<unknown>
}

/** Resolves at the first signal that ends the command. The terminal and npm may both send the signal of one Ctrl-C. */
export const stopSignal = (): Promise<'stopped'> =>
  new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve('stopped'))
  })

/**
 * Runs programs as child processes until they shall stop. The programs of a group start when those in front of it answer, and
 * stop before them. Throws `CommandError`, and stops all, if a program ends before it has answered for the first time.
 */
export const runTogether = async (
  groups: readonly (readonly ProgramCommand[])[],
  { print, onReady, stopped }: RunTogetherOptions
): Promise<void> => {
  const running: KeptProgram[] = []
  let isStopping = false
  let isReady = false
  const onRestarted = (): void => {
    if (isReady && !isStopping) onReady()
  }
  const start = async (): Promise<void> => {
    for (const group of groups) {
      if (isStopping) return
      const started = group.map((program) => new KeptProgram(program, { print, onRestarted }))
      running.push(...started)
      await Promise.all(started.map((program) => program.ready()))
    }
    isReady = true
    onReady()
  }
  try {
    await Promise.race([start().then(() => stopped), stopped])
  } finally {
    isStopping = true
    for (const program of running.toReversed()) await program.stop()
  }
}
