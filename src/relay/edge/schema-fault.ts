import type { TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { schemas } from '../../../schemas/registry.js'

// Compiled when the first publication needs it; checking costs next to nothing then.
const compiled = new Map<string, TypeCheck<TSchema>>()

const MAX_PATH = 200

const compile = (name: string): TypeCheck<TSchema> | null => {
  const known = compiled.get(name)
  if (known !== undefined) return known
  if (!Object.hasOwn(schemas, name)) return null
  const check = TypeCompiler.Compile<TSchema>(schemas[name as keyof typeof schemas])
  compiled.set(name, check)
  return check
}

/** The first fault of data that must fit a schema, with the field that it is in; null where it fits. */
export const schemaFault = (name: string, data: unknown): string | null => {
  const check = compile(name)
  if (check === null) return `there is no schema ${name}`
  if (check.Check(data)) return null
  const first = check.Errors(data).First()
  // Names in the data may be as long as the data, and a broadcast repeats the text for every channel.
  const path = first?.path.slice(0, MAX_PATH).replaceAll('/', '.') ?? ''
  return `data${path} does not fit ${name}: ${(first?.message ?? 'not valid').toLowerCase()}`
}
