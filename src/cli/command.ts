import type { Environment } from '../shared/env.js'

export interface CommandContext {
  /** With the variables of `--env-file`. */
  readonly env: Environment
  /** The readable files of `--env-file`. */
  readonly envFiles: readonly string[]
  readonly print: (text: string) => void
  readonly printErrors: (lines: readonly string[]) => void
}

/** A command of `gatehouse`. Its `run` imports the code that it needs, so that the other commands start quickly. */
export interface Command {
  readonly summary: string
  readonly usage: string
  /** Resolves to the exit code, or to null for a program that keeps running. */
  run(args: readonly string[], context: CommandContext): Promise<number | null>
}

/** Wrong arguments: exit code 2. */
export class UsageError extends Error {}

/** A failure that the user can fix, such as a port in use: exit code 1, one line per error. */
export class CommandError extends Error {
  readonly lines: readonly string[]

  constructor(lines: readonly string[]) {
    super(lines.join('\n'))
    this.lines = lines
  }
}

export const onePositional = (positionals: readonly string[], name: string): string => {
  const [value, ...rest] = positionals
  if (value === undefined) throw new UsageError(`${name} is required`)
  if (rest.length > 0) throw new UsageError(`unexpected argument: ${rest[0]}`)
  return value
}
