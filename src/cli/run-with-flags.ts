import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import type { Environment } from '../shared/env.js'

/** Names the `gatehouse` process that started the program. */
export const PARENT_VARIABLE = 'GATEHOUSE_PARENT'

const PARENT_CHECK_MS = 500

/**
 * Ends the program with its parent: npx runs commands in a shell, which ends at SIGTERM without passing it on, and the parent
 * of `runWithFlags` may be killed.
 */
export const stopWithParent = (env: Environment): void => {
  const parent = process.ppid
  if (env.npm_command !== 'exec' && env[PARENT_VARIABLE] !== String(parent)) return
  const timer = setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, 'SIGTERM')
  }, PARENT_CHECK_MS).unref()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => clearInterval(timer))
}

export interface NodeArguments {
  readonly execArgv: readonly string[]
  readonly nodeOptions: string
}

/** The flags that node was not started with. A flag with another value is kept as it is. */
export const missingFlags = (flags: readonly string[], { execArgv, nodeOptions }: NodeArguments): string[] => {
  const given = new Set([...execArgv, ...nodeOptions.split(/\s+/)].map(flagName))
  return flags.filter((flag) => !given.has(flagName(flag)))
}

/** V8 accepts `_` for `-`, and `--no-` before the name of a flag. */
const flagName = (flag: string): string =>
  flag
    .replaceAll('_', '-')
    .replace(/=.*$/s, '')
    .replace(/^--no-/, '--')

/** Whether another process can take the place of this one: no debugger is attached to it, and its parent sends no messages. */
export const canRestart = ({ execArgv, nodeOptions }: NodeArguments): boolean =>
  !process.connected && ![...execArgv, nodeOptions].some((text) => text.includes('--inspect'))

/** `process.execve` of Node.js 22.15 and newer, which the types of Node.js 20 do not have. */
interface MaybeExecve {
  readonly execve?: (file: string, args: readonly string[], env: Environment) => never
}

const FORWARDED = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const

/**
 * Runs the same command again with more flags of node: in place of this process if node has `execve`, else as its child, which
 * receives its signals. Resolves to the exit code of the child.
 */
export const runWithFlags = async (flags: readonly string[], env: Environment): Promise<number> => {
  const args = [...flags, ...process.execArgv, ...process.argv.slice(1)]
  // It exists on Windows too, but throws.
  const { execve } = process as MaybeExecve
  if (execve !== undefined && process.platform !== 'win32') {
    execve.call(process, process.execPath, [process.execPath, ...args], env)
  }
  const child = spawn(process.execPath, args, {
    stdio: 'inherit',
    env: { ...env, [PARENT_VARIABLE]: String(process.pid) }
  })
  for (const signal of FORWARDED) process.on(signal, () => child.kill(signal))
  // `spawn` fails with an event.
  const [code, signal] = await once(child, 'exit')
  if (signal === null) return code
  // This process ends like the program, so that service managers see the same. Process 1 of a container cannot kill itself.
  for (const each of FORWARDED) process.removeAllListeners(each)
  process.kill(process.pid, signal)
  return 128 + constants.signals[signal as NodeJS.Signals]
}
