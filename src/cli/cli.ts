import packageFile from '../../package.json' with { type: 'json' }
import { messageOf } from '../shared/error-message.js'
import { type Command, type CommandContext, CommandError, UsageError } from './command.js'
import { commands } from './commands/index.js'
import { envFileVariables, takeEnvFiles } from './env-file.js'

const help = (): string => {
  const width = Math.max(...Object.keys(commands).map((name) => name.length)) + 2
  return [
    'Usage: gatehouse COMMAND [OPTION]...',
    '',
    ...Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}${summary}`),
    '',
    'gatehouse COMMAND --help shows the arguments of a command.',
    'Every command accepts --env-file FILE: variables that the environment does not have. It may be repeated.'
  ].join('\n')
}

const commandHelp = ({ summary, usage }: Command): string =>
  `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.\n\nUsage: ${usage}`

const isArgumentError = (error: unknown): error is Error =>
  error instanceof UsageError ||
  (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))

const runCommand = async (
  name: string,
  command: Command,
  args: readonly string[],
  context: CommandContext
): Promise<number | null> => {
  const { print, printErrors } = context
  const end = args.indexOf('--')
  const own = end === -1 ? args : args.slice(0, end)
  if (own.includes('--help') || own.includes('-h')) {
    print(commandHelp(command))
    return 0
  }
  return await command.run(args, context).catch((error: unknown) => {
    if (isArgumentError(error)) {
      printErrors([`gatehouse ${name}: ${error.message.split('\n')[0]}`, `Usage: ${command.usage}`])
      return 2
    }
    printErrors(error instanceof CommandError ? error.lines : [`gatehouse ${name}: ${messageOf(error)}`])
    return 1
  })
}

export interface CliContext extends Omit<CommandContext, 'envFiles'> {
  /** The variables of `--env-file` are added to it. */
  readonly env: NodeJS.ProcessEnv
}

/** Runs `gatehouse` with these arguments. Resolves to the exit code, or to null for a program that keeps running. */
export const runCli = async (all: readonly string[], context: CliContext): Promise<number | null> => {
  const { env, print, printErrors } = context
  let name: string | undefined
  let args: readonly string[]
  let envFiles: readonly string[]
  try {
    const { files, rest } = takeEnvFiles(all)
    envFiles = files
    name = rest[0]
    args = rest.slice(1)
    Object.assign(env, envFileVariables(files, env))
  } catch (error) {
    printErrors([`gatehouse: ${messageOf(error)}`])
    return error instanceof UsageError ? 2 : 1
  }
  if (name === undefined) {
    printErrors(['gatehouse: a command is required', help()])
    return 2
  }
  if (name === '--help' || name === '-h' || name === 'help') {
    print(help())
    return 0
  }
  if (name === '--version') {
    print(packageFile.version)
    return 0
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command !== undefined) return await runCommand(name, command, args, { ...context, envFiles })
  printErrors([`gatehouse: unknown command: ${name}`, help()])
  return 2
}
