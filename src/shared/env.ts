import { readFileSync } from 'node:fs'
import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { errorCode } from './error-code.js'

/**
 * One setting of a program. Settings come from the environment and are read once at start; all errors are reported
 * together.
 */
export interface Setting<S extends TSchema = TSchema, Fallback = unknown> {
  readonly about: string
  /** Describes valid values, for error messages. */
  readonly rule: string
  /** Converts the text. For malformed text, returns a value that the schema rejects. */
  readonly parse: (text: string) => unknown
  readonly schema: S
  readonly fallback: Fallback
  /** Error messages do not contain the text of a secret. */
  readonly secret: boolean
  /** The reason why a text is invalid, if the rule does not make it obvious. Must not contain any part of a secret. */
  readonly explain?: (text: string) => string | null
  /** For numbers that the documentation shows with a unit. */
  readonly unit?: 'bytes'
}

export type Settings = Readonly<Record<string, Setting>>

export type SettingValues<T extends Settings> = {
  readonly [Name in keyof T]: T[Name] extends Setting<infer S, infer Fallback> ? Static<S> | Fallback : never
}

/** Thrown if the program cannot start with its settings. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError'
  readonly errors: readonly string[]

  constructor(errors: readonly string[]) {
    super(errors.join('\n'))
    this.errors = errors
  }
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Reads every setting. Errors are added to `errors`, so that the caller can report its own errors with them. */
export const readSettings = <T extends Settings>(
  settings: T,
  environment: Environment,
  errors: string[]
): SettingValues<T> => {
  const values: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(settings)) {
    values[name] = readSetting(name, setting, environment, errors)
  }
  // Each value is a fallback or has passed the schema of its setting.
  return values as SettingValues<T>
}

const readSetting = (name: string, setting: Setting, environment: Environment, errors: string[]): unknown => {
  const text = settingText(name, environment, errors)
  if (text === undefined) return setting.fallback
  const value = setting.parse(text)
  if (Value.Check(setting.schema, value)) return value
  const shown = setting.secret ? '' : `, not ${JSON.stringify(text.slice(0, 100))}`
  const reason = setting.explain?.(text) ?? null
  errors.push(`${name} must be ${setting.rule}${shown}${reason === null ? '' : `: ${reason}`}`)
  return setting.fallback
}

/** Whether a setting is set, even to an invalid value. An empty or missing file does not set it. */
export const isGiven = (name: string, environment: Environment): boolean =>
  settingText(name, environment, []) !== undefined

/** The variable, or the content of the file that `<name>_FILE` names, as container platforms provide secrets. */
const settingText = (name: string, environment: Environment, errors: string[]): string | undefined => {
  // An empty variable counts as unset: compose files cannot distinguish the two.
  const text = environment[name]?.trim() || undefined
  const file = environment[`${name}_FILE`] || undefined
  if (file === undefined) return text
  if (text !== undefined) {
    errors.push(`${name} and ${name}_FILE must not both be set`)
    return text
  }
  try {
    return readFileSync(file, 'utf8').trim() || undefined
  } catch (error) {
    // `readFileSync` fails with errors of the system.
    errors.push(`${name}_FILE must name a readable file (${errorCode(error)}): ${file}`)
    return undefined
  }
}
