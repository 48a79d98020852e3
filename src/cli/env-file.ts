import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import type { Environment } from '../shared/env.js'
import { errorCode } from '../shared/error-code.js'
import { CommandError, UsageError } from './command.js'

const OPTION = '--env-file'

/** Separates `--env-file FILE` and `--env-file=FILE` from the other arguments. Arguments after `--` are left alone. */
export const takeEnvFiles = (
  args: readonly string[]
): { readonly files: readonly string[]; readonly rest: readonly string[] } => {
  const files: string[] = []
  const rest: string[] = []
  for (let index = 0; index < args.length; index += 1) {
    const arg = args[index] ?? ''
    if (arg === '--') return { files, rest: [...rest, ...args.slice(index)] }
    const isOption = arg === OPTION
    if (!isOption && !arg.startsWith(`${OPTION}=`)) {
      rest.push(arg)
      continue
    }
    if (isOption) index += 1
    const file = isOption ? args[index] : arg.slice(OPTION.length + 1)
    if (file === undefined || file === '') throw new UsageError(`${OPTION} needs a file`)
    files.push(file)
  }
  return { files, rest }
}

/**
 * Adds the file and line to errors about variables of these files: `REALTIME_API_KEY must …` becomes `.env:3:
 * REALTIME_API_KEY must …`. Variables that the environment overrides, and errors that name another file, stay as they are.
 */
export const withEnvFileLines = (
  errors: readonly string[],
  files: readonly string[],
  environment: Environment
): string[] => {
  const places = new Map<string, string>()
  for (const file of files) {
    const text = readFileSync(file, 'utf8')
    const values = parseEnv(text)
    for (const [index, line] of text.split('\n').entries()) {
      const [, name = ''] = /^\s*(?:export\s+)?(\w+)\s*=/.exec(line) ?? []
      if (name !== '' && values[name] === environment[name]) places.set(name, `${file}:${index + 1}`)
    }
  }
  return errors.map((error) => {
    const [, program = '', name = ''] = /^(\w+: )?([A-Z][A-Z0-9_]*)\b(?! \S+:\d+: )/.exec(error) ?? []
    const place = places.get(name)
    return place === undefined ? error : `${program}${place}: ${error.slice(program.length)}`
  })
}

/**
 * The variables of the files that the environment does not have; an empty variable counts as unset. A later file wins over
 * an earlier one. Throws `CommandError` for files that cannot be read.
 */
export const envFileVariables = (files: readonly string[], environment: Environment): Record<string, string> => {
  const errors: string[] = []
  const variables: Record<string, string> = {}
  for (const file of files) {
    try {
      Object.assign(variables, parseEnv(readFileSync(file, 'utf8')))
    } catch (error) {
      errors.push(`${OPTION} must name a readable file (${errorCode(error)}): ${file}`)
    }
  }
  if (errors.length > 0) throw new CommandError(errors)
  return Object.fromEntries(Object.entries(variables).filter(([name]) => !environment[name]))
}
