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
  /** A point in time. The schema has ISO 8601 text; the input shows local time. */
  readonly isTime?: boolean
  /** The value for a new record. */
  readonly initial?: unknown
  /** Whether the field is shown with these values, and sent; by default always. */
  readonly isShown?: (entered: Values) => boolean
}

export interface FormField extends FieldSpec {
  readonly label: string
  /** The last ones are HTML input types. */
  readonly kind:
    | 'flag'
    | 'choice'
    | 'choices'
    | 'long'
    | 'list'
    | 'number'
    | 'password'
    | 'email'
    | 'tel'
    | 'text'
    | 'datetime-local'
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
  /** Of a stored record, `save` gets the changed fields only, so that changes by others meanwhile are kept. */
  readonly hasChangesOnly?: boolean
  /** The label of the submit button. */
  readonly action: string | ((entered: Values) => string)
  readonly isDanger?: boolean
  /** Explains the consequences. */
  readonly note?: string
}

/** A form in a dialog. */
export interface Task extends Form {
  readonly title: string
  /** The message after success. The result is that of `save`. */
  readonly done: (body: Values, result: unknown) => string
}

const LONG_TEXT = 500

export const fieldsOf = (schema: TObject, specs: readonly (string | FieldSpec)[], withHints = false): FormField[] =>
  specs.map((given) => {
    const spec = typeof given === 'string' ? { name: given } : given
    const property = propertyOf(schema, spec.name)
    const hint = spec.hint ?? (withHints ? property.description : undefined)
    return { label: labelOf(spec.name), ...spec, ...(hint && { hint }), kind: kindOf(spec, property) }
  })

/** The values of empty fields that are not text. */
const EMPTY: Readonly<Partial<Record<FormField['kind'], unknown>>> = { flag: false, choices: [] }

/** The initial values. Empty fields are empty text, as in inputs. */
export const enteredAtFirst = (fields: readonly FormField[], stored?: Values): Record<string, unknown> =>
  Object.fromEntries(
    fields.map(({ name, kind, initial }) => {
      const value = stored?.[name] ?? initial ?? EMPTY[kind] ?? ''
      if (kind === 'datetime-local') return [name, localTime(String(value))]
      return [name, Array.isArray(value) && kind !== 'choices' ? value.join(', ') : value]
    })
  )

/** The request body. Empty fields become null if the schema allows it. */
export const bodyOf = (schema: TObject, fields: readonly FormField[], entered: Values): Values =>
  Object.fromEntries(
    fields.map(({ name, kind }) => {
      const value = cleaned(kind, entered[name])
      return [name, value === '' && mayBeNull(schema.properties[name]) ? null : value]
    })
  )

/** The fields of a body that differ from another one. */
export const changesIn = (body: Values, before: Values): Values =>
  Object.fromEntries(
    Object.entries(body).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]))
  )

/** A field that somebody else has changed while the form was open. */
export interface FieldConflict {
  readonly name: string
  readonly label: string
  readonly theirs: unknown
  readonly theirText: string
  readonly ownText: string
  /** Whether the user has changed the field too. */
  readonly isOwnChange: boolean
}

/** The fields that differ between the record on which the form is based and the current record. */
export const conflictsOf = (
  schema: TObject,
  fields: readonly FormField[],
  records: { readonly based: Values; readonly entered: Values; readonly current: Values }
): readonly FieldConflict[] => {
  const theirs = enteredAtFirst(fields, records.current)
  const theirBody = bodyOf(schema, fields, theirs)
  const ownBody = bodyOf(schema, fields, records.entered)
  const changed = Object.keys(changesIn(theirBody, records.based))
  const own = Object.keys(changesIn(ownBody, records.based))
  return fields
    .filter(({ name }) => changed.includes(name))
    .map((field) => ({
      name: field.name,
      label: field.label,
      theirs: theirs[field.name],
      theirText: valueText(field, theirs[field.name]),
      ownText: valueText(field, records.entered[field.name]),
      isOwnChange: own.includes(field.name)
    }))
}

const valueText = ({ kind, options }: FormField, value: unknown): string => {
  if (kind === 'flag') return value ? 'yes' : 'no'
  if (kind === 'datetime-local') return String(value).replace('T', ' ') || 'empty'
  const nameOf = (one: unknown): string => options?.find(({ id }) => id === String(one))?.name || String(one ?? '')
  return (Array.isArray(value) ? value.map(nameOf).join(', ') : nameOf(value)) || 'empty'
}

const MINUTE_MS = 60_000

/** "2026-03-01T09:30", as the input of a local time expects it; empty without a time. */
const localTime = (iso: string): string => {
  const time = new Date(iso)
  if (Number.isNaN(time.getTime())) return ''
  return new Date(time.getTime() - time.getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 16)
}

/** An incomplete time stays as it is, so that the schema rejects it. */
const isoTime = (local: string): string => {
  const time = new Date(local)
  return Number.isNaN(time.getTime()) ? local : time.toISOString()
}

/** Trims text except passwords, splits lists, and converts local times. */
const cleaned = (kind: FormField['kind'], value: unknown): unknown => {
  if (typeof value !== 'string' || kind === 'password') return value
  if (kind === 'datetime-local') return isoTime(value)
  const parts = value.split(',').map((part) => part.trim())
  return kind === 'list' ? parts.filter(Boolean) : value.trim()
}

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
  secret: 'password',
  email: 'email',
  phone: 'tel',
  url: 'text',
  mobile: 'tel'
}

const kindOf = ({ name, options, isTime }: FieldSpec, { type, maxLength = 0 }: TSchema): FormField['kind'] => {
  if (options) return type === 'array' ? 'choices' : 'choice'
  if (isTime) return 'datetime-local'
  if (type === 'boolean') return 'flag'
  if (type === 'number' || type === 'integer') return 'number'
  if (type === 'array') return 'list'
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
