/** Wrong arguments. Reported together with the usage text; the exit code is 2. */
export class UsageError extends Error {}

/** A failure that the user can fix. Reported without a stack trace; the exit code is 1. */
export class UserError extends Error {}

/**
 * Runs the main function of a script with its arguments; the resolved number is the exit code. `--help` prints the usage.
 * Errors of `util.parseArgs` count as wrong arguments.
 */
export const runCommand = async (
  usage: string,
  main: (args: readonly string[]) => Promise<number> | number
): Promise<void> => {
  const args = process.argv.slice(2)
  if (args.includes('--help')) {
    process.stdout.write(`${usage}\n`)
    return
  }
  try {
    process.exitCode = await main(args)
  } catch (error) {
    if (isUsageError(error)) {
      process.stderr.write(`${error.message}\n\n${usage}\n`)
      process.exitCode = 2
    } else if (error instanceof UserError) {
      process.stderr.write(`${error.message}\n`)
      process.exitCode = 1
    } else throw error
  }
}

const isUsageError = (error: unknown): error is Error =>
  error instanceof UsageError ||
  (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS_'))

export const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}
