import { isObject } from '../shared/is-object.js'
import { DEFINITION, type RequestSchemas } from './schemas.js'

/**
 * The locations of schemas that refer to themselves for the same value, such as `A: { allOf: [A] }`. Their validation would
 * not end.
 */
export const endlessSchemas = ({ definitions, locations }: RequestSchemas): string[] => {
  const done = new Set<string>()
  const open = new Set<string>()
  const endless: string[] = []
  const visit = (name: string): void => {
    if (done.has(name)) return
    if (open.has(name)) {
      endless.push(locations.get(name) ?? name)
      return
    }
    open.add(name)
    for (const target of sameValueReferences(definitions[name])) visit(target)
    open.delete(name)
    done.add(name)
  }
  for (const name of Object.keys(definitions)) visit(name)
  return endless
}

const SAME_VALUE_KEYWORDS = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentSchemas'] as const

const sameValueReferences = (schema: unknown): string[] => {
  if (!isObject(schema)) return []
  const own = typeof schema[DEFINITION] === 'string' ? [schema[DEFINITION]] : []
  const inner = SAME_VALUE_KEYWORDS.flatMap((keyword) => {
    const value = schema[keyword]
    if (Array.isArray(value)) return value
    return keyword === 'dependentSchemas' && isObject(value) ? Object.values(value) : [value]
  })
  return [...own, ...inner.flatMap(sameValueReferences)]
}
