import type { TSchema } from '@sinclair/typebox'
import { isObject } from '../../shared/is-object.js'
import { isIgnored } from './centrifugo-options.js'

/**
 * The values of a file as the schema describes them. As in Centrifugo, null and an empty text stand for the default, and a
 * text may stand for a number, a boolean or a list of one entry. Options of Centrifugo that have no effect are removed.
 */
export const fileValues = (value: unknown, schema: TSchema, path = ''): unknown => {
  const cast = typeof value === 'string' ? castText(value, schema) : value
  if (Array.isArray(cast) && schema.type === 'array')
    return cast.map((entry, index) => fileValues(entry, schema.items, `${path}[${index}]`))
  if (!isObject(cast) || schema.type !== 'object') return cast
  const options: ReadonlyMap<string, TSchema> = new Map(Object.entries<TSchema>(schema.properties))
  const isOff = isDisabled(cast, options.get('enabled'))
  return Object.fromEntries(
    Object.entries(cast).flatMap(([name, option]) => {
      const optionPath = path === '' ? name : `${path}.${name}`
      const inner = options.get(name)
      if (inner === undefined) return isIgnored(optionPath, option, isOff) ? [] : [[name, option]]
      return isUnset(option) ? [] : [[name, fileValues(option, inner, optionPath)]]
    })
  )
}

/** Whether the section has a switch that is off, in the file or by default. */
const isDisabled = (section: Readonly<Record<string, unknown>>, enabled: TSchema | undefined): boolean =>
  enabled !== undefined && (isUnset(section.enabled) ? enabled.default : fileValues(section.enabled, enabled)) === false

const isUnset = (value: unknown): boolean => value === undefined || value === null || value === ''

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['true', 'True', 'TRUE', 't', 'T', '1'].map((text) => [text, true] as const),
  ...['false', 'False', 'FALSE', 'f', 'F', '0'].map((text) => [text, false] as const)
])

/** A text that is not such a value stays a text, which the schema rejects. */
const castText = (text: string, schema: TSchema): unknown => {
  if (schema.type === 'boolean') return BOOLEANS.get(text) ?? text
  if (schema.type === 'integer') return /^(?:0|[1-9]\d{0,14})$/.test(text) ? Number(text) : text
  return schema.type === 'array' ? [text] : text
}
