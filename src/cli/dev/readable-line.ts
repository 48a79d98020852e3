const LEVELS: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'WARN',
  50: 'ERROR',
  60: 'FATAL'
}

// Shown in another form, or of no use on a terminal.
const HIDDEN: ReadonlySet<string> = new Set(['level', 'time', 'pid', 'hostname', 'name', 'msg', 'v', 'requestId'])

const NAME_WIDTH = 8

/** Formats a JSON log line for a terminal: program, time, level, message, fields. Other lines are only prefixed. */
export const readableLine = (name: string, line: string): string => {
  const prefix = `${name.padEnd(NAME_WIDTH)}│ `
  const entry = parsed(line)
  if (entry === null) return prefix + line
  const time = new Date(Number(entry.time)).toISOString().slice(11, 19)
  const fields = Object.entries(entry)
    .filter(([field]) => !HIDDEN.has(field))
    .map(([field, value]) => `${field}=${fieldText(value)}`)
  return `${prefix}${[time, (LEVELS[Number(entry.level)] ?? '').padEnd(5), entry.msg ?? '', ...fields].join(' ').trimEnd()}`
}

const parsed = (line: string): Record<string, unknown> | null => {
  try {
    const entry = JSON.parse(line)
    return typeof entry?.level === 'number' && typeof entry.time === 'number' ? entry : null
  } catch {
    return null
  }
}

const fieldText = (value: unknown): string => {
  if (typeof value === 'string') return value
  // Of an error, only its stack is shown.
  if (typeof value === 'object' && value !== null && 'stack' in value) return String(value.stack)
  return JSON.stringify(value)
}
