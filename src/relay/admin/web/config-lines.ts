/** One value of the config: `namespaces.floor.history_size` is `10`. */
export interface ConfigLine {
  readonly path: string
  readonly value: string
}

/** The config as lines under its first names, in the order in which it came. */
export const configSections = (config: unknown): readonly { readonly name: string; readonly lines: ConfigLine[] }[] => {
  if (!isObject(config)) return [{ name: 'config', lines: linesOf('', config) }]
  const plain = Object.entries(config).filter(([, value]) => !isObject(value))
  const nested = Object.entries(config).filter(([, value]) => isObject(value))
  return [
    ...(plain.length > 0 ? [{ name: 'general', lines: plain.flatMap(([name, value]) => linesOf(name, value)) }] : []),
    ...nested.map(([name, value]) => ({ name, lines: linesOf('', value) }))
  ]
}

const linesOf = (path: string, value: unknown): ConfigLine[] => {
  if (!isObject(value)) return [{ path, value: valueText(value) }]
  const entries = Object.entries(value)
  if (entries.length === 0) return [{ path, value: 'nothing' }]
  return entries.flatMap(([name, inner]) => linesOf(path === '' ? name : `${path}.${name}`, inner))
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
