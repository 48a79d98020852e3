import { isObject } from '../fields-of.js'
import type { CheckData } from './shared-stream.js'

/** A schema of TypeBox, which has the type of its values in `static`. */
export interface TypeBoxSchema {
  readonly static: unknown
}

interface Issue {
  readonly message: string
}

/** The part of the Standard Schema interface that is used; Zod, Valibot and ArkType implement it. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    /** Returns `{ value }` or `{ issues }`. */
    validate(value: unknown): unknown
    readonly types?: { readonly output: Output } | undefined
  }
}

declare const DATA: unique symbol

/** Declares the type of data without a schema. */
export interface TypeOnly<Data> {
  readonly [DATA]?: Data
}

/** `'orders:*': typeOnly<Order>()` declares a type that is not checked. */
export const typeOnly = <Data>(): TypeOnly<Data> => ({})

/** Schemas by channel pattern; `*` stands for any text. */
export type ChannelSchemas = Readonly<Record<string, TypeBoxSchema | StandardSchema | TypeOnly<unknown>>>

/** No channel is declared. */
export type NoChannels = Readonly<Record<never, never>>

/** The type argument of a call that leaves the data to the declared channels. */
export interface Declared {
  readonly [DATA]: 'declared'
}

type PatternText<Pattern extends string> = Pattern extends `${infer Start}*${infer End}`
  ? `${Start}${string}${PatternText<End>}`
  : Pattern

type MatchingPatterns<Schemas, Channel extends string> = {
  [Pattern in keyof Schemas & string]: Channel extends PatternText<Pattern> ? Pattern : never
}[keyof Schemas & string]

type SchemaData<Schema> = Schema extends { readonly static: infer Data }
  ? Data
  : Schema extends { readonly '~standard': { readonly types?: { readonly output: infer Data } | undefined } }
    ? Data
    : Schema extends TypeOnly<infer Data>
      ? Data
      : unknown

/** The data of a channel: that of all patterns that match it; unknown if none does. */
export type ChannelData<Schemas, Channel extends string> = [MatchingPatterns<Schemas, Channel>] extends [never]
  ? unknown
  : SchemaData<Schemas[MatchingPatterns<Schemas, Channel>]>

/** `Data` if the caller declares it, otherwise the data of the declared channel. */
export type DataOf<Data, Schemas, Channel extends string> = [Data] extends [Declared]
  ? ChannelData<Schemas, Channel>
  : Data

export interface ChannelsOptions {
  /**
   * Checks every publication. A function such as `Value.Check` of TypeBox, or true for schemas that can validate themselves.
   * For development: `import.meta.env.DEV && Value.Check`. Default: false.
   */
  readonly check?: boolean | ((schema: never, data: unknown) => boolean)
}

export interface Channels<Schemas extends ChannelSchemas = ChannelSchemas> {
  readonly schemas: Schemas
  /** Null if publications of this channel are not checked. */
  checkOf(channel: string): CheckData | null
}

/** Declares the data of channels, by patterns such as `orders:*`. */
export const defineChannels = <const Schemas extends ChannelSchemas>(
  schemas: Schemas,
  { check = false }: ChannelsOptions = {}
): Channels<Schemas> => {
  const entries = Object.entries(schemas).map(([pattern, schema]) => ({
    pattern,
    expression: expressionOf(pattern),
    problem: check === false ? null : problemWith(pattern, schema, check)
  }))
  return {
    schemas,
    checkOf: (channel) => {
      const matching = entries.filter(({ expression }) => expression.test(channel))
      const problems = matching.flatMap(({ problem }) => (problem === null ? [] : [problem]))
      // One pattern without a schema permits everything.
      if (problems.length === 0 || problems.length < matching.length) return null
      return (data) => {
        const found = problems.map((problem) => problem(data))
        return found.includes(null) ? null : found.join('; ')
      }
    }
  }
}

const expressionOf = (pattern: string): RegExp => {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 's')
}

const problemWith = (
  pattern: string,
  schema: ChannelSchemas[string],
  check: true | ((schema: never, data: unknown) => boolean)
): CheckData | null => {
  if (Object.keys(schema).length === 0 && !('~standard' in schema)) return null
  if (check !== true) {
    // The application passes a function for the schemas that it declares.
    return (data) => (check(schema as never, data) ? null : `not a value of ${pattern}`)
  }
  if (!('~standard' in schema))
    throw new TypeError(
      `the schema of ${pattern} cannot validate itself: pass a function, such as Value.Check, as check`
    )
  return (data) => {
    const { issues } = resultOf(schema['~standard'].validate(data))
    return issues === undefined ? null : issues.map(({ message }) => message).join(', ')
  }
}

const resultOf = (result: unknown): { readonly issues?: readonly Issue[] | undefined } => {
  if (result instanceof Promise) return { issues: [{ message: 'its schema is asynchronous' }] }
  return isObject(result) ? result : {}
}
