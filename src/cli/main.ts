#!/usr/bin/env node
/**
 * The `gatehouse` command. Exit codes: 0 success, 1 the input is wrong or the program failed, 2 wrong arguments.
 */
import { parseArgs } from 'node:util'
import packageFile from '../../package.json' with { type: 'json' }
import { messageOf } from '../shared/error-message.js'
import type { CheckResult } from './check-config.js'

interface Command {
  readonly summary: string
  readonly usage: string
  /** Resolves to the exit code, or to null for a program that keeps running. */
  run(args: readonly string[]): Promise<number | null>
}

class UsageError extends Error {}

const print = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

const printErrors = (lines: readonly string[]): void => {
  process.stderr.write(lines.map((line) => `${line}\n`).join(''))
}

/** Returns the exit code. */
const printCheck = (subject: string, { errors, warnings }: CheckResult): number => {
  printErrors([...errors, ...warnings.map((line) => `warning: ${line}`)])
  if (errors.length > 0) return 1
  print(`${subject} valid`)
  return 0
}

const SHELL_CHECK_MS = 500

/** npx runs commands in a shell, which ends at SIGTERM without passing it on: the program would keep running. */
const stopWithShellOfNpx = (): void => {
  if (process.env.npm_command !== 'exec') return
  const shell = process.ppid
  const timer = setInterval(() => {
    if (process.ppid !== shell) process.kill(process.pid, 'SIGTERM')
  }, SHELL_CHECK_MS).unref()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => clearInterval(timer))
}

/** Programs take their configuration from the environment only. */
const program = (name: string, summary: string, load: () => Promise<unknown>): Command => ({
  summary,
  usage: `gatehouse ${name}`,
  run: async (args) => {
    parseArgs({ args: [...args], options: {}, strict: true })
    stopWithShellOfNpx()
    await load()
    return null
  }
})

const commands: Readonly<Record<string, Command>> = {
  gateway: program('gateway', 'run the gateway, configured by the environment', () => import('../gateway/main.js')),
  relay: program('relay', 'run the relay, configured by the environment', () => import('../relay/main.js')),
  'check-config': {
    summary: 'validate a configuration file of the relay, or the settings of the gateway in the environment',
    usage: 'gatehouse check-config FILE | --gateway',
    run: async (args) => {
      const { values, positionals } = parseArgs({
        args: [...args],
        options: { gateway: { type: 'boolean', default: false } },
        allowPositionals: true
      })
      const { checkConfigFile, checkGateway } = await import('./check-config.js')
      if (values.gateway) {
        if (positionals[0] !== undefined) throw new UsageError(`unexpected argument: ${positionals[0]}`)
        return printCheck('the settings of the gateway are', await checkGateway(process.env))
      }
      const [file] = onePositional(positionals, 'FILE')
      return printCheck(`${file} is`, checkConfigFile(file))
    }
  },
  token: {
    summary: 'print a relay token that is signed with REALTIME_HMAC_SECRET',
    usage: 'gatehouse token --user ID [--ttl 1h] [--channel NAME]... [--info JSON]',
    run: async (args) => {
      const { values } = parseArgs({
        args: [...args],
        options: {
          user: { type: 'string' },
          ttl: { type: 'string', default: '1h' },
          channel: { type: 'string', multiple: true, default: [] },
          info: { type: 'string' }
        }
      })
      if (values.user === undefined) throw new UsageError('--user is required')
      const { relayToken } = await import('./token.js')
      const token = relayToken(
        { user: values.user, ttl: values.ttl, channels: values.channel, info: values.info },
        process.env
      )
      if ('error' in token) {
        if (token.isUsage) throw new UsageError(token.error)
        printErrors([token.error])
        return 1
      }
      print(token.text)
      return 0
    }
  },
  'client-api': {
    summary: 'generate typed calls for gatehouse-client from an OpenAPI description',
    usage: 'gatehouse client-api FILE [-o FILE]',
    run: async (args) => {
      const { values, positionals } = parseArgs({
        args: [...args],
        options: { output: { type: 'string', short: 'o' } },
        allowPositionals: true
      })
      const [file] = onePositional(positionals, 'FILE')
      const [{ clientApi }, { SettingsError }] = await Promise.all([
        import('./client-api.js'),
        import('../shared/env.js')
      ])
      try {
        const text = clientApi(file)
        if (values.output === undefined) process.stdout.write(text)
        else (await import('node:fs')).writeFileSync(values.output, text)
        return 0
      } catch (error) {
        if (!(error instanceof SettingsError)) throw error
        printErrors(error.errors)
        return 1
      }
    }
  }
}

const onePositional = (positionals: readonly string[], name: string): [string] => {
  const [value, ...rest] = positionals
  if (value === undefined) throw new UsageError(`${name} is required`)
  if (rest.length > 0) throw new UsageError(`unexpected argument: ${rest[0]}`)
  return [value]
}

const help = (): string => {
  const width = Math.max(...Object.keys(commands).map((name) => name.length)) + 2
  return [
    'Usage: gatehouse COMMAND [OPTION]...',
    '',
    ...Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}${summary}`),
    '',
    'gatehouse COMMAND --help shows the arguments of a command.'
  ].join('\n')
}

const isArgumentError = (error: unknown): error is Error =>
  error instanceof UsageError ||
  (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))

const main = async ([name, ...args]: readonly string[]): Promise<number | null> => {
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
  if (command === undefined) {
    printErrors([`gatehouse: unknown command: ${name}`, help()])
    return 2
  }
  if (args.includes('--help') || args.includes('-h')) {
    print(`${command.summary.charAt(0).toUpperCase()}${command.summary.slice(1)}.\n\nUsage: ${command.usage}`)
    return 0
  }
  try {
    return await command.run(args)
  } catch (error) {
    if (isArgumentError(error)) {
      printErrors([`gatehouse ${name}: ${error.message.split('\n')[0]}`, `Usage: ${command.usage}`])
      return 2
    }
    printErrors([`gatehouse ${name}: ${messageOf(error)}`])
    return 1
  }
}

const exitCode = await main(process.argv.slice(2))
if (exitCode !== null) process.exitCode = exitCode
