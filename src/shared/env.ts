import { readFileSync } from 'node:fs'
import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

/**
 * Settings come from the environment, are read once at start, and all faults are told at once, by name.
 * A program lists its settings as a table of these; the table is also what the documentation is checked against.
 */
export interface Setting<S extends TSchema = TSchema, Fallback = unknown> {
  readonly about: string
  /** What a good value looks like, for the person who wrote a bad one. */
  readonly rule: string
  /** Text to value. Text that makes no sense becomes something that the schema refuses. */
  readonly parse: (text: string) => unknown
  readonly schema: S
  readonly fallback: Fallback
  /** A secret's text is never shown. */
  readonly secret: boolean
  /** For numbers that are told to people in something else than ones. */
  readonly unit?: 'bytes'
}

export type Settings = Readonly<Record<string, Setting>>

export type SettingValues<T extends Settings> = {
  readonly [Name in keyof T]: T[Name] extends Setting<infer S, infer Fallback> ? Static<S> | Fallback : never
}

/** Thrown when the program cannot start with what it was given. */
export class SettingsFault extends Error {
  override readonly name = 'SettingsFault'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(faults.join('\n'))
    this.faults = faults
  }
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Reads every setting; what is wrong is added to `faults`, so that the caller can add its own before it gives up. */
export const readSettings = <T extends Settings>(
  settings: T,
  environment: Environment,
  faults: string[]
): SettingValues<T> => {
  const values: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(settings)) {
    values[name] = readSetting(name, setting, environment, faults)
  }
  return values as SettingValues<T>
}

const readSetting = (name: string, setting: Setting, environment: Environment, faults: string[]): unknown => {
  const text = settingText(name, environment, faults)
  if (text === undefined) return setting.fallback
  const value = setting.parse(text)
  if (Value.Check(setting.schema, value)) return value
  faults.push(`${name} must be ${setting.rule}${setting.secret ? '' : `, not ${JSON.stringify(text.slice(0, 100))}`}`)
  return setting.fallback
}

/** Whether a setting has a text of its own, be it a bad one. A file that is empty, or not there, gives none. */
export const isGiven = (name: string, environment: Environment): boolean =>
  settingText(name, environment, []) !== undefined

/** The variable itself, or the content of the file that `<name>_FILE` names: how containers hand over secrets. */
const settingText = (name: string, environment: Environment, faults: string[]): string | undefined => {
  // An empty variable is an unset one: compose files and shells cannot tell them apart.
  const text = environment[name]?.trim() || undefined
  const file = environment[`${name}_FILE`] || undefined
  if (file === undefined) return text
  if (text !== undefined) {
    faults.push(`${name} and ${name}_FILE must not both be set`)
    return text
  }
  try {
    return readFileSync(file, 'utf8').trim() || undefined
  } catch (error) {
    faults.push(`${name}_FILE must name a readable file (${(error as NodeJS.ErrnoException).code})`)
    return undefined
  }
}
