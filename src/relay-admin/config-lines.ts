/** One option, such as `historySize` with the value `10`. */
export interface ConfigLine {
  readonly name: string
  readonly value: string
}

/** The options below one path, such as `channels.namespaces.chat`. */
export interface ConfigSection {
  readonly name: string
  readonly lines: readonly ConfigLine[]
}

const ROOT = 'general'

/** Splits the configuration into sections: plain values first, then nested objects, each in the given order. */
export const configSections = (config: unknown, name = ''): readonly ConfigSection[] => {
  const entries = Object.entries(isObject(config) ? config : { value: config })
  const plain = entries.filter(([, value]) => !isObject(value))
  const nested = entries.filter(([, value]) => isObject(value))
  const lines = plain.map(([key, value]) => ({ name: key, value: valueText(value) }))
  return [
    ...(lines.length > 0 ? [{ name: name || ROOT, lines }] : []),
    ...nested.flatMap(([key, value]) => configSections(value, name === '' ? key : `${name}.${key}`))
  ]
}

/** The options whose name, value or section contains the text, in any letter case. */
export const matchingSections = (sections: readonly ConfigSection[], search: string): readonly ConfigSection[] => {
  const matches = (text: string): boolean => text.toLowerCase().includes(search.toLowerCase())
  return sections
    .map(({ name, lines }) => ({
      name,
      lines: matches(name) ? lines : lines.filter((line) => matches(line.name) || matches(line.value))
    }))
    .filter(({ lines }) => lines.length > 0)
}

const valueText = (value: unknown): string => {
  if (value === null || value === undefined) return 'not set'
  if (value === '') return 'empty'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(itemText).join(', ')
  return String(value)
}

const itemText = (item: unknown): string => (isObject(item) ? JSON.stringify(item) : valueText(item))

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
