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
 * `CommandError`. Each program stops before the programs in front of it.
 */
export const runTogether = async (
  programs: readonly ProgramCommand[],
  { print, onReady, stopped }: RunTogetherOptions
): Promise<void> => {
  const running = programs.map((program) => new RunningProgram(program, print))
  const firstEnd = Promise.race(
    running.map(async ({ program, ended }) => `The ${program.name} ${await ended}, so the others stop too.`)
  )
  const stop = stopped.then(() => null)
  try {
    const ready = Promise.all(running.map((program) => program.ready())).then(() => 'ready' as const)
    if ((await Promise.race([ready, stop])) === null) return
    onReady()
    const end = await Promise.race([stop, firstEnd])
    if (end !== null) throw new CommandError([end])
  } finally {
    for (const program of running.toReversed()) await program.stop()
  }
}
