/** A start tag with its decoded attributes, an end tag, or text between tags. */
export type SvgToken =
  | StartTag
  | { readonly kind: 'end'; readonly name: string }
  | { readonly kind: 'text'; readonly text: string }

export interface StartTag {
  readonly kind: 'start'
  readonly name: string
  readonly attributes: Attributes
  readonly isEmpty: boolean
  /** The index in the file after the attributes. */
  readonly end: number
}

export type Attributes = ReadonlyMap<string, string>

/** The reason why a file is rejected, for its author. */
export class SvgError extends Error {
  override readonly name = 'SvgError'
}

const notWellFormed = (): SvgError => new SvgError('The SVG file is not well-formed XML.')

const NAME = '[A-Za-z_][\\w.-]*(?::[A-Za-z_][\\w.-]*)?'
const TAG = new RegExp(`<(/?)(${NAME})`, 'y')
const ATTRIBUTE = new RegExp(`\\s+(${NAME})\\s*=\\s*(?:"([^"<]*)"|'([^'<]*)')`, 'y')
const TAG_END = /\s*(\/?)>/y
/** A document type that names only the public definition of SVG, which editors write and browsers do not load. */
const DOCUMENT_TYPE = /<!DOCTYPE\s+svg(?:\s+(?:PUBLIC\s*(?:"[^"<]*"|'[^'<]*')|SYSTEM)\s*(?:"[^"<]*"|'[^'<]*'))?\s*>/y
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/**
 * The tags and texts of an SVG file, in time proportional to its length. Only what plans need: a file with entities of its own
 * or processing instructions is rejected, because they can load other files and multiply themselves.
 */
export function* svgTokens(source: string): Generator<SvgToken> {
  // The declaration is a processing instruction, the only one that is allowed.
  const [declaration = ''] = /^\s*<\?xml\s[^<>]*\?>/.exec(source) ?? []
  if (/encoding\s*=\s*["'](?!utf-?8["'])/i.test(declaration)) throw new SvgError('The SVG file must be in UTF-8.')
  let index = declaration.length
  // At most one, in front of the drawing.
  let mayHaveType = true
  while (index < source.length) {
    const next = source.indexOf('<', index)
    const end = next < 0 ? source.length : next
    if (end > index) yield { kind: 'text', text: decoded(source.slice(index, end)) }
    index = end
    if (index === source.length) return
    if (source.startsWith('<!--', index)) index = after(source, '-->', index)
    else if (source.startsWith('<![CDATA[', index)) {
      const close = after(source, ']]>', index)
      yield { kind: 'text', text: source.slice(index + 9, close - 3) }
      index = close
    } else if (source.startsWith('<!', index)) {
      const type = mayHaveType ? matchAt(DOCUMENT_TYPE, source, index) : null
      if (type === null)
        throw new SvgError(
          'The SVG file has a document type (DOCTYPE) with entities or other declarations. Save it as plain SVG, or as PDF.'
        )
      mayHaveType = false
      index += type[0].length
    } else if (source.startsWith('<?', index))
      throw new SvgError('The SVG file has a processing instruction. Remove it.')
    else {
      mayHaveType = false
      const { token, close } = readTag(source, index)
      yield token
      index = close
    }
  }
}

const after = (source: string, end: string, from: number): number => {
  const at = source.indexOf(end, from)
  if (at < 0) throw notWellFormed()
  return at + end.length
}

const matchAt = (pattern: RegExp, source: string, index: number): RegExpExecArray | null => {
  pattern.lastIndex = index
  return pattern.exec(source)
}

const readTag = (source: string, begin: number): { readonly token: SvgToken; readonly close: number } => {
  const tag = matchAt(TAG, source, begin)
  if (tag === null) throw notWellFormed()
  const [whole, slash, name = ''] = tag
  let index = begin + whole.length
  const attributes = new Map<string, string>()
  for (let found = matchAt(ATTRIBUTE, source, index); found !== null; found = matchAt(ATTRIBUTE, source, index)) {
    const [text, attribute = '', quoted, apostrophed] = found
    if (attributes.has(attribute)) throw notWellFormed()
    attributes.set(attribute, decoded(quoted ?? apostrophed ?? ''))
    index += text.length
  }
  const end = matchAt(TAG_END, source, index)
  if (end === null || (slash === '/' && (attributes.size > 0 || end[1] === '/'))) throw notWellFormed()
  const close = index + end[0].length
  if (slash === '/') return { token: { kind: 'end', name }, close }
  return { token: { kind: 'start', name, attributes, isEmpty: end[1] === '/', end: index }, close }
}

const UNKNOWN_ENTITY = /&(?!(?:#x[0-9a-f]{1,6}|#[0-9]{1,7}|amp|lt|gt|quot|apos);)/i

const decoded = (text: string): string => {
  if (!text.includes('&')) return text
  if (UNKNOWN_ENTITY.test(text)) throw new SvgError('The SVG file has an entity that is not allowed.')
  return text.replace(
    /&(?:#x([0-9a-f]+)|#([0-9]+)|([a-z]+));/gi,
    (_, hexadecimal?: string, decimal?: string, name = '') => {
      const code = hexadecimal === undefined ? Number(decimal) : Number.parseInt(hexadecimal, 16)
      return ENTITIES[name] ?? (code <= 0x10ffff ? String.fromCodePoint(code) : '')
    }
  )
}
