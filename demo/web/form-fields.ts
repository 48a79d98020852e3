import type { TObject, TSchema } from '@sinclair/typebox'
import type { CallOptions } from 'gatehouse-client'
import type { Named } from './types.js'

// Form fields and request bodies, derived from the schemas that page, gateway and backend share.

export type Values = Readonly<Record<string, unknown>>

/** The presentation of a field, which its schema does not define. */
export interface FieldSpec {
  readonly name: string
  readonly label?: string
  readonly hint?: string
  readonly options?: readonly Named[]
  /** The value for a new record. */
  readonly initial?: unknown
}

export interface FormField extends FieldSpec {
  readonly label: string
  /** The last ones are HTML input types. */
  readonly kind: 'flag' | 'choice' | 'long' | 'number' | 'password' | 'email' | 'tel' | 'text'
}

/** A form and its action. */
export interface Form {
  /** Defines and validates the fields. Without it the form has no fields. */
  readonly schema?: TObject
  /** The fields to show; by default all. */
  readonly specs?: readonly (string | FieldSpec)[]
  readonly stored?: Values
  /** The query has the version of the stored record on which the changes are based, if it has one. */
  readonly save: (body: Values, options: CallOptions) => Promise<unknown>
  /** The label of the submit button. */
  readonly action: string
  readonly isDanger?: boolean
  /** Explains the consequences. */
  readonly note?: string
}

const LONG_TEXT = 500

export const fieldsOf = (schema: TObject, specs: readonly (string | FieldSpec)[], withHints = false): FormField[] =>
  specs.map((given) => {
    const spec = typeof given === 'string' ? { name: given } : given
    const property = propertyOf(schema, spec.name)
    const hint = spec.hint ?? (withHints ? property.description : undefined)
    return { label: labelOf(spec.name), ...spec, ...(hint && { hint }), kind: kindOf(spec, property) }
  })

/** The initial values. Empty fields are empty text, as in inputs. */
export const enteredAtFirst = (fields: readonly FormField[], stored?: Values): Record<string, unknown> =>
  Object.fromEntries(
    fields.map(({ name, kind, initial }) => [name, stored?.[name] ?? initial ?? (kind === 'flag' ? false : '')])
  )

/** The request body. Text is trimmed except passwords. Empty fields become null if the schema allows it. */
export const bodyOf = (schema: TObject, fields: readonly FormField[], entered: Values): Values =>
  Object.fromEntries(
    fields.map(({ name, kind }) => {
      const given = entered[name]
      const value = typeof given === 'string' && kind !== 'password' ? given.trim() : given
      return [name, value === '' && mayBeNull(schema.properties[name]) ? null : value]
    })
  )

/** The version that a change is based on, for the query of its request. */
export const versionOf = (record: Values | undefined): CallOptions =>
  typeof record?.version === 'number' ? { query: { version: record.version } } : {}

const mayBeNull = (property: TSchema | undefined): boolean =>
  property?.anyOf?.some(({ type }: TSchema) => type === 'null') ?? false

/** The schema of a field without its null alternative, but with its description. */
const propertyOf = (schema: TObject, name: string): TSchema => {
  const property = schema.properties[name]
  if (property === undefined) throw new Error(`the schema ${schema.title} has no field ${name}`)
  return { ...(property.anyOf?.[0] ?? property), description: property.description }
}

const INPUTS: Readonly<Record<string, FormField['kind']>> = {
  password: 'password',
  newPassword: 'password',
  email: 'email',
  phone: 'tel',
  mobile: 'tel'
}

const kindOf = ({ name, options }: FieldSpec, { type, maxLength = 0 }: TSchema): FormField['kind'] => {
  if (options) return 'choice'
  if (type === 'boolean') return 'flag'
  if (type === 'number' || type === 'integer') return 'number'
  return INPUTS[name] ?? (maxLength >= LONG_TEXT ? 'long' : 'text')
}

const LABELS: Readonly<Record<string, string>> = { email: 'E-mail address', phone: 'Phone', timezone: 'Time zone' }

/** "departmentId" becomes "Department", "isFirstAider" "First aider", "scanIntervalMs" "Scan interval (ms)". */
export const labelOf = (name: string): string => {
  const words = name.replace(/^is(?=[A-Z])|Id$/g, '').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  const text = words
    .trim()
    .replace(/ (ms|seconds|minutes|hours|days)$/, ' ($1)')
    .replace(/\b(sms|rssi|tx)\b/, (short) => short.toUpperCase())
  return LABELS[name] ?? `${text[0]?.toUpperCase()}${text.slice(1)}`
}
