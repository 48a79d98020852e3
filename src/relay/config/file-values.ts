import type { TSchema } from '@sinclair/typebox'
import { isObject } from '../../shared/is-object.js'
import { withOneEngine } from './centrifugo-engine.js'
import { isIgnored, reasonToIgnore } from './centrifugo-options.js'
import { unusedSections } from './engine-kinds.js'
import { DURATION_PATTERN } from './schema-kinds.js'

/**
 * The values of a file as the schema describes them. As in Centrifugo, null, an empty text, and 0 where it is not a useful
 * value stand for the default; a text may stand for a number or a boolean, a number for a text or a boolean, and one entry for
 * a list. Options of Centrifugo that have no effect are removed, and noted unless they have none there either. `engine` wins
 * over the engine of the file.
 */
export const fileValues = (
  file: unknown,
  schema: TSchema,
  engine: string | null = null,
  notes: string[] = []
): unknown => {
  const value = withOneEngine(file, engine, notes)
  const typeIn = (section: string): unknown =>
    isObject(value) && isObject(value[section]) ? value[section].type : undefined
  const unused = unusedSections(engine ?? typeIn('engine'), typeIn('map_broker'))
  return optionValue(value, schema, '', { unused, notes })
}

interface Reading {
  /** Paths of sections without an effect. */
  readonly unused: ReadonlySet<string>
  readonly notes: string[]
}

const optionValue = (value: unknown, schema: TSchema, path: string, reading: Reading): unknown => {
  const cast = castValue(value, schema)
  if (Array.isArray(cast) && schema.type === 'array')
    return cast.map((entry, index) => optionValue(entry, schema.items, `${path}[${index}]`, reading))
  if (!isObject(cast) || schema.type !== 'object') return cast
  if (schema.properties === undefined) return castEntries(cast, schema)
  const options: ReadonlyMap<string, TSchema> = new Map(Object.entries<TSchema>(schema.properties))
  const isOff = reading.unused.has(path) || isDisabled(cast, options.get('enabled'))
  return Object.fromEntries(
    Object.entries(cast).flatMap(([name, option]) => {
      const optionPath = path === '' ? name : `${path}.${name}`
      const inner = options.get(name)
      if (inner !== undefined)
        return isDefault(option, inner) ? [] : [[name, optionValue(option, inner, optionPath, reading)]]
      if (!isIgnored(optionPath, option, isOff)) return [[name, option]]
      const reason = reasonToIgnore(optionPath, option, isOff)
      if (reason !== null) reading.notes.push(`${optionPath} has no effect: ${reason}`)
      return []
    })
  )
}

/** The entries of an object with any names, such as headers. */
const castEntries = (entries: Readonly<Record<string, unknown>>, { patternProperties }: TSchema): unknown => {
  const [valueSchema] = Object.values<TSchema>(patternProperties)
  return Object.fromEntries(
    Object.entries(entries).map(([name, value]) => [
      name,
      valueSchema === undefined ? value : castValue(value, valueSchema)
    ])
  )
}

/** Whether the section has a switch that is off, in the file or by default. */
const isDisabled = (section: Readonly<Record<string, unknown>>, enabled: TSchema | undefined): boolean =>
  enabled !== undefined && (isUnset(section.enabled) ? enabled.default : castValue(section.enabled, enabled)) === false

const isUnset = (value: unknown): boolean => value === undefined || value === null || value === ''

/** `channel_limit: 0` is not a limit of no channels. */
const isDefault = (value: unknown, schema: TSchema): boolean =>
  isUnset(value) || (schema.type === 'integer' && schema.minimum > 0 && castValue(value, schema) === 0)

const BOOLEANS: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  ...['true', 'True', 'TRUE', 't', 'T', '1', 1].map((value) => [value, true] as const),
  ...['false', 'False', 'FALSE', 'f', 'F', '0', 0].map((value) => [value, false] as const)
])

/** A value that cannot be converted stays as it is, and the schema rejects it. */
const castValue = (value: unknown, schema: TSchema): unknown => {
  if (schema.type === 'boolean') return BOOLEANS.get(value) ?? value
  if (schema.type === 'array') return Array.isArray(value) ? value : [value]
  if (schema.type === 'integer')
    return typeof value === 'string' && /^(?:0|[1-9]\d{0,14})$/.test(value) ? Number(value) : value
  return schema.type === 'string' && typeof value === 'number' ? castNumber(value, schema) : value
}

/** A large number has lost digits. As a duration, Centrifugo takes a number for nanoseconds, which nobody means. */
const castNumber = (value: number, schema: TSchema): unknown =>
  schema.pattern === DURATION_PATTERN
    ? value === 0
      ? '0'
      : value
    : Number.isSafeInteger(value)
      ? String(value)
      : value
