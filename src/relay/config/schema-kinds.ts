import { type TProperties, Type } from '@sinclair/typebox'
import type { CommandLimit, LimitedCommand } from '../core/options.js'

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000]
])

/** Durations such as `300s`, `1h30m` and `1.5s`, or `0`. */
export const DURATION_PATTERN = '^(?:0|(?:\\d{1,9}(?:\\.\\d{1,3})?(?:ms|s|m|h))+)$'

const PART = /(\d+(?:\.\d+)?)(ms|s|m|h)/g

/** Converts a text that matches `DURATION_PATTERN`. */
export const durationMs = (text: string): number =>
  Math.round(
    [...text.matchAll(PART)].reduce((sum, [, count, unit = '']) => sum + Number(count) * (UNIT_MS.get(unit) ?? 0), 0)
  )

/** As in Centrifugo, 0 stands for the default. */
export const durationOr = (text: string | undefined, fallback: string): number =>
  durationMs(text ?? '0') || durationMs(fallback)

const MAX_COUNT = 1_000_000_000
export const GIB = 1024 ** 3

export const section = <P extends TProperties>(description: string, properties: P) =>
  Type.Optional(Type.Object(properties, { description, additionalProperties: false }))

// A `default` is documentation: the code that reads the file has the same value, which a test compares.

export const flag = (description: string, fallback = false) =>
  Type.Optional(Type.Boolean({ description, default: fallback }))

const withDefault = (fallback: unknown): { readonly default?: unknown } =>
  fallback === undefined ? {} : { default: fallback }

export const count = (description: string, minimum = 0, maximum = MAX_COUNT, fallback?: number) =>
  Type.Optional(Type.Integer({ description, minimum, maximum, ...withDefault(fallback) }))

/** A number of something that is unlimited by default. */
export const limit = (description: string) => count(description, 0, MAX_COUNT, 0)

export const duration = (description: string, fallback?: string) =>
  Type.Optional(Type.String({ description, pattern: DURATION_PATTERN, examples: ['300s'], ...withDefault(fallback) }))

export const text = (description: string, maxLength = 1024, fallback?: string) =>
  Type.Optional(Type.String({ description, minLength: 1, maxLength, ...withDefault(fallback) }))

const LIMITED_COMMANDS = ['connect', 'subscribe', 'publish', 'rpc', 'history'] as const

/** Limits of commands; `commands` are those that can occur. */
export const commandLimits = (description: string, commands: readonly LimitedCommand[] = LIMITED_COMMANDS) =>
  Type.Optional(
    Type.Array(
      Type.Object(
        {
          commands: Type.Array(Type.Unsafe<LimitedCommand>(Type.Union(commands.map((name) => Type.Literal(name)))), {
            description: `The commands that the limit counts together: ${commands.join(', ')}.`,
            minItems: 1,
            uniqueItems: true
          }),
          by: Type.Unsafe<'client' | 'user'>(
            Type.Union([Type.Literal('client'), Type.Literal('user')], {
              description: 'client: each connection; user: all connections of a user to a process of the relay.'
            })
          ),
          rate: Type.Integer({
            description: 'The number of commands per interval, and at once.',
            minimum: 1,
            maximum: 1_000_000
          }),
          interval: Type.Optional(
            Type.String({ description: 'The interval; 0: the default.', pattern: DURATION_PATTERN, default: '1s' })
          )
        },
        { additionalProperties: false }
      ),
      { description, default: [] }
    )
  )

/** The limits of a file, with defaults. */
export const commandLimitsOf = (file: readonly FileCommandLimit[] = []): readonly CommandLimit[] =>
  file.map(({ interval, ...limit }) => ({ ...limit, intervalMs: durationOr(interval, '1s') }))

interface FileCommandLimit extends Omit<CommandLimit, 'intervalMs'> {
  readonly interval?: string
}

export const oneOf = <const Choice extends string>(
  choices: readonly Choice[],
  description: string,
  fallback?: Choice
) =>
  Type.Optional(
    Type.Unsafe<Choice>(
      Type.Union(
        choices.map((choice) => Type.Literal(choice)),
        { description, ...withDefault(fallback) }
      )
    )
  )
