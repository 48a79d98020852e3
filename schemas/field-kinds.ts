import { type TOptional, type TSchema, type TUnion, Type } from '@sinclair/typebox'

// The kinds of fields that several domains have. Every kind is bounded, and every field says what it means.

/** How many fields an open object may have, the unknown ones included. */
export const MAX_PROPERTIES = 200

/** One line of text. */
export const text = (description: string, maxLength = 200) => Type.String({ maxLength, description })

/** A text that has to say something. */
export const label = (description: string, maxLength = 200) => Type.String({ minLength: 1, maxLength, description })

/** Lenient on purpose: only the mail server knows which addresses exist. */
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

/** An object whose fields are the sender's own business. */
export const anything = (description: string) =>
  Type.Object({}, { additionalProperties: true, maxProperties: MAX_PROPERTIES, description })

/** A place on a floor plan, or a length and direction on it. */
export const point = (description: string) =>
  Type.Object(
    {
      x: number(-1e9, 1e9, 'Across.'),
      y: number(-1e9, 1e9, 'The vertical coordinate on the plan.'),
      z: Type.Optional(number(-1e9, 1e9, 'The height above the floor, if known.'))
    },
    { additionalProperties: true, maxProperties: MAX_PROPERTIES, description }
  )

/**
 * A field that may be left out, or be null: a page that sends back what it has read sends null for every field that is
 * empty at the backend.
 */
export const maybe = <T extends TSchema>(schema: T): TOptional<TUnion<[T, ReturnType<typeof Type.Null>]>> =>
  Type.Optional(Type.Union([schema, Type.Null()], { description: schema.description ?? '' }))
