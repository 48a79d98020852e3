import { extname } from 'node:path'
import { parseEvents } from 'js-yaml'
import { linesOf } from '../shared/yaml-lines.js'

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
