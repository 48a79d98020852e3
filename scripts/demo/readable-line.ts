const LEVELS: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'WARN',
  50: 'ERROR',
  60: 'FATAL'
}

// Said by the line itself, or of no use to a person who watches.
const NOT_SHOWN: ReadonlySet<string> = new Set(['level', 'time', 'pid', 'hostname', 'name', 'msg', 'v', 'requestId'])

const NAME_WIDTH = 8

/** A line of a program's log for a person: who, when, how grave, what, and the facts. What is no log line stays as it is. */
export const readableLine = (name: string, line: string): string => {
  const prefix = `${name.padEnd(NAME_WIDTH)}│ `
  const entry = parsed(line)
  if (entry === null) return prefix + line
  const time = new Date(Number(entry.time)).toISOString().slice(11, 19)
  const facts = Object.entries(entry)
    .filter(([field]) => !NOT_SHOWN.has(field))
    .map(([field, value]) => `${field}=${factText(value)}`)
  return `${prefix}${[time, (LEVELS[Number(entry.level)] ?? '').padEnd(5), entry.msg ?? '', ...facts].join(' ').trimEnd()}`
}

const parsed = (line: string): Record<string, unknown> | null => {
  try {
    const entry = JSON.parse(line)
    return typeof entry?.level === 'number' && typeof entry.time === 'number' ? entry : null
  } catch {
    return null
  }
}

const factText = (value: unknown): string => {
  if (typeof value === 'string') return value
  // An error's own fields fill a screen; its stack says it all.
  const stack = (value as { stack?: unknown } | null)?.stack
  return typeof stack === 'string' ? stack : JSON.stringify(value)
}
