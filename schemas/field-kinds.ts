import { type TOptional, type TSchema, type TUnion, Type } from '@sinclair/typebox'

// Field types that several schemas share. All are bounded, and all have a description.

/** The maximum number of fields of an open object, including unknown ones. */
export const MAX_PROPERTIES = 200

/** One line of text. */
export const text = (description: string, maxLength = 200) => Type.String({ maxLength, description })

/** Non-empty text. */
export const label = (description: string, maxLength = 200) => Type.String({ minLength: 1, maxLength, description })

/** Lenient on purpose: only a mail server can tell whether an address exists. */
export const email = (description: string) =>
  Type.String({ minLength: 3, maxLength: 254, pattern: '^[^\\s@]+@[^\\s@]+$', description })

export const flag = (description: string) => Type.Boolean({ description })

export const number = (minimum: number, maximum: number, description: string) =>
  Type.Number({ minimum, maximum, description })

export const integer = (minimum: number, maximum: number, description: string) =>
  Type.Integer({ minimum, maximum, description })

/** A point in time: ISO 8601 text, or milliseconds since 1970. */
export const moment = (description: string) =>
  Type.Union(
    [Type.String({ minLength: 1, maxLength: 64 }), Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })],
    { description }
  )

export const texts = (description: string, maxItems = 100) =>
  Type.Array(Type.String({ maxLength: 200 }), { maxItems, description })

/** An object with arbitrary fields. */
export const anything = (description: string) =>
  Type.Object({}, { additionalProperties: true, maxProperties: MAX_PROPERTIES, description })

/** A position or a vector on a floor plan. */
export const point = (description: string) =>
  Type.Object(
    {
      x: number(-1e9, 1e9, 'The horizontal coordinate on the plan.'),
      y: number(-1e9, 1e9, 'The vertical coordinate on the plan.'),
      z: Type.Optional(number(-1e9, 1e9, 'The height above the floor, if known.'))
    },
    { additionalProperties: true, maxProperties: MAX_PROPERTIES, description }
  )

/** An optional field that may be null: web applications that send back what they have read send null for empty fields. */
export const maybe = <T extends TSchema>(schema: T): TOptional<TUnion<[T, ReturnType<typeof Type.Null>]>> =>
  Type.Optional(Type.Union([schema, Type.Null()], { description: schema.description ?? '' }))
