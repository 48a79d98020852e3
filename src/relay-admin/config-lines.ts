/** One value of the config: `historySize` is `10`. */
export interface ConfigLine {
  readonly name: string
  readonly value: string
}

/** What stands under one name: `channels.namespaces.floor`. */
export interface ConfigSection {
  readonly name: string
  readonly lines: readonly ConfigLine[]
}

const ROOT = 'general'

/** The config as sections, in the order in which it came: its plain values first, then what is nested in it. */
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
