import type { TSchema } from '@sinclair/typebox'

/** The alternatives of a union schema; none for other schemas. */
export const choicesOf = (schema: TSchema): readonly TSchema[] => schema.anyOf ?? []

/** The properties of an object schema by name; none for other schemas. */
export const propertiesOf = (schema: TSchema): [name: string, schema: TSchema][] =>
  Object.entries<TSchema>(schema.properties ?? {})

/** The names of the required properties of an object schema. */
export const requiredOf = (schema: TSchema): readonly string[] => schema.required ?? []

/** The JSON types that a schema accepts; empty if it accepts nothing. */
export const typesOf = (schema: TSchema): readonly string[] =>
  schema.anyOf ? choicesOf(schema).flatMap(typesOf) : [schema.type ?? []].flat()
