// The nodes of a JSON text in document order. Unlike JSON.parse it keeps all digits of numbers, duplicate keys and the
// order of keys, and unlike nested objects it has no depth: a text with 100,000 levels is a flat list too.

export type JsonKind = 'object' | 'list' | 'string' | 'number' | 'word'

export interface JsonNode {
  /** The key in an object or the index in a list; '' for the root. */
  readonly key: string
  readonly depth: number
  /** Index of the parent; -1 for the root. */
  readonly parent: number
  readonly kind: JsonKind
  /** The JSON text of a string, number or word; '' for objects and lists. */
  readonly text: string
  /** Number of children. */
  readonly size: number
  /** Index after the last descendant. */
  readonly end: number
}

type MutableNode = { -readonly [Field in keyof JsonNode]: JsonNode[Field] }

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const isContainer = ({ kind }: Pick<JsonNode, 'kind'>): boolean => kind === 'object' || kind === 'list'
export const canCollapse = (node: JsonNode): boolean => isContainer(node) && node.size > 0

/** Null if the text is not JSON. */
export const jsonTree = (text: string): readonly JsonNode[] | null => (isJson(text) ? nodesOf(text) : null)

/** `text` is valid JSON. */
const nodesOf = (text: string): readonly JsonNode[] => {
  const nodes: MutableNode[] = []
  /** Index of the innermost open object or list. */
  let parent = -1
  let key: string | null = null
  for (let at = 0; at < text.length; ) {
    const character = text[at] ?? ''
    const container = nodes[parent]
    if (' \n\r\t,:'.includes(character)) at++
    else if (character === '}' || character === ']') {
      if (container !== undefined) {
        container.end = nodes.length
        parent = container.parent
      }
      at++
    } else {
      const end = '{['.includes(character) ? at + 1 : character === '"' ? endOfString(text, at) : endOfWord(text, at)
      const token = text.slice(at, end)
      at = end
      if (container?.kind === 'object' && key === null) {
        key = JSON.parse(token)
        continue
      }
      const node: MutableNode = {
        key: key ?? (container === undefined ? '' : String(container.size)),
        depth: container === undefined ? 0 : container.depth + 1,
        parent,
        kind: kindOf(character),
        text: '{['.includes(character) ? '' : readable(token),
        size: 0,
        end: nodes.length + 1
      }
      key = null
      if (container !== undefined) container.size++
      nodes.push(node)
      if (isContainer(node)) parent = nodes.length - 1
    }
  }
  return nodes
}

const kindOf = (character: string): JsonKind => {
  if (character === '{') return 'object'
  if (character === '[') return 'list'
  if (character === '"') return 'string'
  return /[-\d]/.test(character) ? 'number' : 'word'
}

/** The index after the closing quote. */
const endOfString = (text: string, start: number): number => {
  let end = text.indexOf('"', start + 1)
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end + 1
}

const isEscaped = (text: string, at: number): boolean => {
  let before = at
  while (text[before - 1] === '\\') before--
  return (at - before) % 2 === 1
}

const endOfWord = (text: string, start: number): number => {
  let end = start
  while (end < text.length && !' \n\r\t,:]}'.includes(text[end] ?? '')) end++
  return end
}

/** `"\u00e9"` becomes `"é"`. Characters that JSON must escape stay escaped. */
const readable = (token: string): string => (token.includes('\\u') ? JSON.stringify(JSON.parse(token)) : token)

/** Texts with at most this many nodes are shown completely at first. */
const SMALL = 100

/** The nodes that are collapsed at first: in long texts everything below the first two levels. */
export const initiallyCollapsed = (nodes: readonly JsonNode[]): ReadonlySet<number> => {
  const collapsed = new Set<number>()
  if (nodes.length > SMALL)
    for (const [index, node] of nodes.entries()) if (node.depth > 1 && canCollapse(node)) collapsed.add(index)
  return collapsed
}

/** Indices of the nodes without a collapsed ancestor. */
export const visibleNodes = (nodes: readonly JsonNode[], collapsed: ReadonlySet<number>): readonly number[] => {
  const visible: number[] = []
  for (let index = 0; index < nodes.length; ) {
    visible.push(index)
    index = collapsed.has(index) ? (nodes[index]?.end ?? nodes.length) : index + 1
  }
  return visible
}

/** The row of a node in the ascending list of visible nodes; -1 if it is not visible. */
export const rowOfNode = (visible: readonly number[], index: number): number => {
  let low = 0
  let high = visible.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const found = visible[middle] ?? 0
    if (found === index) return middle
    if (found < index) low = middle + 1
    else high = middle - 1
  }
  return -1
}

/** Indices of the nodes whose key or value contains the text, in any letter case. */
export const matchingNodes = (nodes: readonly JsonNode[], search: string): readonly number[] => {
  const lower = search.toLowerCase()
  if (lower === '') return []
  const matches: number[] = []
  for (const [index, { key, text }] of nodes.entries())
    if (key.toLowerCase().includes(lower) || text.toLowerCase().includes(lower)) matches.push(index)
  return matches
}

/** The ancestors of a node, innermost first. */
export const ancestorsOf = (nodes: readonly JsonNode[], index: number): readonly number[] => {
  const ancestors: number[] = []
  for (let at = nodes[index]?.parent ?? -1; at >= 0; at = nodes[at]?.parent ?? -1) ancestors.push(at)
  return ancestors
}

const PLAIN_KEY = /^[A-Za-z_]\w*$/
/** A path is shortened in the middle beyond this many steps. */
const MAX_STEPS = 40

/** The path of a node, such as `data[3].position.x`; '' for the root. */
export const pathOf = (nodes: readonly JsonNode[], index: number): string => {
  const path = [index, ...ancestorsOf(nodes, index)].slice(0, -1).reverse()
  const steps = path.map((at, step) => stepOf(nodes, at, step === 0))
  if (steps.length <= MAX_STEPS) return steps.join('')
  return `${steps.slice(0, MAX_STEPS / 2).join('')} … ${steps.slice(-MAX_STEPS / 2).join('')}`
}

const stepOf = (nodes: readonly JsonNode[], index: number, isFirst: boolean): string => {
  const node = nodes[index]
  if (node === undefined) return ''
  if (nodes[node.parent]?.kind === 'list') return `[${node.key}]`
  if (!PLAIN_KEY.test(node.key)) return `[${JSON.stringify(node.key)}]`
  return isFirst ? node.key : `.${node.key}`
}

const INDENT = '  '
/** Deeper levels have the same indentation, so that the text does not grow with the square of the depth. */
const MAX_INDENTS = 20

/** The JSON text with one value per line. Unlike JSON.stringify it keeps all digits and duplicate keys. */
export const indentedJson = (nodes: readonly JsonNode[]): string => {
  const lines: string[] = []
  const indentOf = ({ depth }: JsonNode): string => INDENT.repeat(Math.min(depth, MAX_INDENTS))
  const open: JsonNode[] = []
  const closeUntil = (index: number): void => {
    for (let last = open.at(-1); last !== undefined && last.end === index; last = open.at(-1)) {
      lines.push(`${indentOf(last)}${last.kind === 'object' ? '}' : ']'}`)
      open.pop()
    }
  }
  for (const [index, node] of nodes.entries()) {
    closeUntil(index)
    if (index > node.parent + 1) lines.push(`${lines.pop()},`)
    const key = nodes[node.parent]?.kind === 'object' ? `${JSON.stringify(node.key)}: ` : ''
    lines.push(`${indentOf(node)}${key}${openingOf(node)}`)
    if (canCollapse(node)) open.push(node)
  }
  closeUntil(nodes.length)
  return lines.join('\n')
}

const openingOf = ({ kind, size, text }: JsonNode): string => {
  if (kind === 'object') return size === 0 ? '{}' : '{'
  if (kind === 'list') return size === 0 ? '[]' : '['
  return text
}
