import { readFileSync } from 'node:fs'
import { dirname, extname, resolve } from 'node:path'
import { parseEvents } from 'js-yaml'
import { type LineOf, linesOf } from '../shared/yaml-lines.js'

/**
 * The line of an option such as `channel.namespaces[0].name` in a config file of the relay. Null for TOML, whose parser does
 * not report it.
 */
export const configLines = (file: string, text: string): ((option: string) => number | null) => {
  if (extname(file).toLowerCase() === '.toml') return () => null
  try {
    // JSON is YAML, too.
    const lineOf = linesOf(parseEvents(text, {}), text)
    return (option) => lineOf(`/${option.replaceAll('[', '.').replaceAll(']', '').replaceAll('.', '/')}`)
  } catch {
    return () => null
  }
}

/**
 * Adds the line to errors of an OpenAPI description: `openapi.yaml#/paths/~1a/get: must …` becomes `openapi.yaml:7#/paths/…`.
 * `file` is the main file, to which the names of the others are relative.
 */
export const withPointerLines = (errors: readonly string[], file: string): string[] => {
  const linesByName = new Map<string, LineOf | null>()
  const linesIn = (name: string): LineOf | null => {
    const known = linesByName.get(name)
    if (known !== undefined) return known
    const lineOf = linesOfFile(resolve(dirname(file), name))
    linesByName.set(name, lineOf)
    return lineOf
  }
  return errors.map((error) => {
    const [, name = '', pointer = ''] = /^([^#]+)#(\/.*?): /.exec(error) ?? []
    const line = name === '' ? undefined : linesIn(name)?.(pointer.replaceAll('~1', '/').replaceAll('~0', '~'))
    return line === undefined ? error : `${name}:${line}${error.slice(name.length)}`
  })
}

/** Null if the file cannot be read: the text before the pointer was not the name of a file. */
const linesOfFile = (path: string): LineOf | null => {
  try {
    const text = readFileSync(path, 'utf8')
    return linesOf(parseEvents(text, {}), text)
  } catch {
    return null
  }
}
