// A JSON text as lines. Unlike JSON.parse and JSON.stringify it keeps all digits of numbers, duplicate keys and the order of
// keys, and it does not recurse: a text with 100,000 levels is a flat list too.

export interface JsonLine {
  readonly depth: number
  /** Without indentation, such as `"x": 1.0,` or `"data": [`. */
  readonly text: string
  /** For the first line of an object or list: its number of members, and the index of its last line. Otherwise 0. */
  readonly size: number
  readonly end: number
}

type MutableLine = { -readonly [Field in keyof JsonLine]: JsonLine[Field] }

/** Null if the text is not JSON. */
export const jsonLines = (text: string): readonly JsonLine[] | null => {
  try {
    JSON.parse(text)
  } catch {
    return null
  }
  const lines: MutableLine[] = []
  /** The first lines of the open objects and lists. */
  const open: MutableLine[] = []
  let line = ''
  const endLine = (): MutableLine => {
    const ended = { depth: open.length, text: line, size: 0, end: 0 }
    lines.push(ended)
    line = ''
    return ended
  }
  for (const token of tokensOf(text)) {
    const innermost = open.at(-1)
    const isEnd = token === '}' || token === ']'
    if (line === '' && !isEnd && innermost !== undefined) innermost.size++
    if (isEnd) {
      if (line !== '') endLine()
      open.pop()
      if (innermost === lines.at(-1)) line = lines.pop()?.text ?? ''
      else if (innermost !== undefined) innermost.end = lines.length
    }
    line += token === ':' ? ': ' : readable(token)
    if (token === '{' || token === '[') open.push(endLine())
    else if (token === ',') endLine()
  }
  endLine()
  return lines
}

function* tokensOf(text: string): Iterable<string> {
  const tokens = /["{}[\],:]|[^\s"{}[\],:]+/g
  for (let match = tokens.exec(text); match !== null; match = tokens.exec(text)) {
    if (match[0] === '"') tokens.lastIndex = endOfString(text, match.index)
    yield text.slice(match.index, tokens.lastIndex)
  }
}

/** The index after the closing quote. */
const endOfString = (text: string, start: number): number => {
  let at = start + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

/** `"\u00e9"` becomes `"é"`. Characters that JSON must escape stay escaped. */
const readable = (token: string): string => (token.includes('\\u') ? JSON.stringify(JSON.parse(token)) : token)

/** All objects and lists from this depth on. */
export const foldedFrom = (lines: readonly JsonLine[], depth: number): Set<number> =>
  new Set(lines.flatMap((line, index) => (line.size > 0 && line.depth >= depth ? [index] : [])))

/** Indices of the lines outside folded objects and lists. */
export const visibleLines = (lines: readonly JsonLine[], folded: ReadonlySet<number>): readonly number[] => {
  const visible: number[] = []
  for (let index = 0; index < lines.length; index++) {
    visible.push(index)
    if (folded.has(index)) index = lines[index]?.end ?? index
  }
  return visible
}

/** Indices of the lines that contain the text, in any letter case. */
export const matchingLines = (lines: readonly JsonLine[], search: string): readonly number[] => {
  const lower = search.toLowerCase()
  return lower === '' ? [] : lines.flatMap(({ text }, index) => (text.toLowerCase().includes(lower) ? [index] : []))
}

/** Deeper levels have the same indentation, so that the text does not grow with the square of the depth. */
const MAX_INDENTS = 20

/** The complete text with indented lines. */
export const indentedJson = (lines: readonly JsonLine[]): string =>
  lines.map(({ depth, text }) => '  '.repeat(Math.min(depth, MAX_INDENTS)) + text).join('\n')
