import { CommandError } from '../command.js'
import { type ProgramCommand, RunningProgram } from './running-program.js'

export interface RunTogetherOptions {
  readonly print: (line: string) => void
  /** Called when all programs answer. */
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
 * Runs programs as child processes until they shall stop, or until one of them ends, which stops the others too: then it throws
 * `CommandError`. The programs of a group start when those in front of it answer, and stop before them.
 */
export const runTogether = async (
  groups: readonly (readonly ProgramCommand[])[],
  { print, onReady, stopped }: RunTogetherOptions
): Promise<void> => {
  const running: RunningProgram[] = []
  let isStopping = false
  const start = async (): Promise<'ready'> => {
    for (const group of groups) {
      if (isStopping) break
      const started = group.map((program) => new RunningProgram(program, print))
      running.push(...started)
      await Promise.all(started.map((program) => program.ready()))
    }
    return 'ready'
  }
  const stop = stopped.then(() => null)
  try {
    if ((await Promise.race([start(), stop])) === null) return
    onReady()
    const firstEnd = running.map(
      async ({ program, ended }) => `The ${program.name} ${await ended}, so the others stop too.`
    )
    const end = await Promise.race([stop, ...firstEnd])
    if (end !== null) throw new CommandError([end])
  } finally {
    isStopping = true
    for (const program of running.toReversed()) await program.stop()
  }
}
