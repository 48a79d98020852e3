import type { PixelSize } from '../png.js'
import { type Attributes, type StartTag, SvgError, svgTokens } from './svg-tokens.js'

// The check of uploaded SVG plans. They are shown only as images, which load and run nothing; this check is the second guard,
// for a file that is opened otherwise.

const MAX_BYTES = 5_000_000
const MAX_ELEMENTS = 200_000
const MAX_DEPTH = 100
/** The size in pixels to which a plan is drawn, whatever its unit is. */
const LONGEST_SIDE = 3000
const NAMESPACE = 'http://www.w3.org/2000/svg'

const FORBIDDEN =
  /^(?:script|foreignobject|iframe|object|embed|audio|video|canvas|html|body|link|meta|base|handler|listener|set|animate\w*|discard|mpath)$/i
const EMBEDDED_IMAGE = /^data:image\/(?:png|jpeg|webp);base64,[A-Za-z0-9+/=\s]*$/

interface Element {
  readonly name: string
  readonly children: Element[]
  /** The id of the element that a `use` repeats. */
  readonly repeats: string | null
}

export interface SvgPlan extends PixelSize {
  readonly bytes: Buffer
}

/** Checks an SVG file. Returns it with a fixed size in pixels. Throws `SvgError` with the reason. */
export const svgPlan = (bytes: Uint8Array): SvgPlan => {
  if (bytes.length > MAX_BYTES) throw new SvgError(`The SVG file is larger than ${MAX_BYTES / 1_000_000} MB.`)
  const source = textOf(bytes)
  const root = checkedRoot(source)
  const { viewBox, ...size } = sizeOf(root.attributes)
  const rest = [...root.attributes].filter(([name]) => !['width', 'height', 'viewBox'].includes(name))
  const attributes = [...rest, ['width', size.width], ['height', size.height], ['viewBox', viewBox]] as const
  const tag = `<svg ${attributes.map(([name, value]) => `${name}="${escaped(String(value))}"`).join(' ')}`
  return { ...size, bytes: Buffer.from(`${tag}${source.slice(root.end)}`) }
}

const textOf = (bytes: Uint8Array): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new SvgError('The SVG file must be in UTF-8.')
  }
}

/** Checks all elements. Returns the first one. */
const checkedRoot = (source: string): StartTag => {
  const top: Element = { name: '', children: [], repeats: null }
  const open = [top]
  const byId = new Map<string, Element>()
  let root: StartTag | null = null
  let elements = 0
  for (const token of svgTokens(source)) {
    const parent = open.at(-1) ?? top
    if (token.kind === 'text') {
      if (parent === top && token.text.trim() !== '')
        throw new SvgError('The SVG file has text outside of its drawing.')
      if (localName(parent.name) === 'style') checkStyle(token.text)
    } else if (token.kind === 'end') {
      if (parent.name !== token.name) throw new SvgError('The SVG file is not well-formed XML.')
      open.pop()
    } else {
      if (parent === top && root !== null) throw new SvgError('The SVG file is not well-formed XML.')
      elements += 1
      if (elements > MAX_ELEMENTS || open.length > MAX_DEPTH) throw tooComplex()
      root ??= checkedDrawing(token)
      const element = { name: token.name, children: [], repeats: checkedReference(token.name, token.attributes) }
      parent.children.push(element)
      const id = token.attributes.get('id')
      if (id !== undefined) byId.set(id, element)
      if (!token.isEmpty) open.push(element)
    }
  }
  if (root === null || open.length > 1) throw new SvgError('The SVG file is not well-formed XML.')
  checkRepetitions(top, byId)
  return root
}

const localName = (name: string): string => name.slice(name.indexOf(':') + 1)

const tooComplex = (): SvgError => new SvgError('The SVG file has too many elements.')

/** The first element is the drawing. */
const checkedDrawing = (tag: StartTag): StartTag => {
  if (tag.name !== 'svg' || tag.attributes.get('xmlns') !== NAMESPACE)
    throw new SvgError('The file is not an SVG drawing.')
  return tag
}

/** Checks an element. Returns the id of the element that a `use` repeats. */
const checkedReference = (name: string, attributes: Attributes): string | null => {
  const element = localName(name)
  if (FORBIDDEN.test(element)) throw new SvgError(`The SVG file has the element <${name}>, which is not allowed.`)
  for (const [attribute, value] of attributes) {
    const local = localName(attribute)
    if (/^on/i.test(local)) throw new SvgError(`The SVG file has the event attribute ${attribute}. Remove it.`)
    if (attribute === 'xml:base') throw new SvgError('The SVG file refers to other files. Embed them.')
    if (/^(?:href|src)$/i.test(local)) checkReference(element, value)
    else if (local === 'style' || attribute === local) checkStyle(value)
    // Attributes of editors, which browsers ignore, may have paths of Windows.
    else checkUrls(value)
  }
  const target = attributes.get('href') ?? attributes.get('xlink:href')
  return element === 'use' && target !== undefined ? target.slice(1) : null
}

const checkReference = (element: string, value: string): void => {
  const isLocal = /^#[^\s]*$/.test(value)
  if (!isLocal && !(element === 'image' && EMBEDDED_IMAGE.test(value)))
    throw new SvgError('The SVG file refers to other files or addresses. Embed images as PNG or JPEG.')
}

/** Paints, masks and clips may refer to elements of the same file. */
const checkUrls = (value: string): void => {
  for (const [, target = ''] of value.matchAll(/url\(\s*["']?([^)]?)/gi))
    if (target !== '#') throw new SvgError('The SVG file refers to other files or addresses. Remove these styles.')
}

const checkStyle = (css: string): void => {
  // Escapes could hide the words that are searched for.
  if (/@import|@font-face|@namespace|image-set\(|src\(|expression\(|\\/i.test(css))
    throw new SvgError('The SVG file has styles that load files, or escapes in styles. Remove these styles.')
  checkUrls(css)
}

/** A `use` repeats an element, which may contain others: a few nested ones would be millions of elements. */
const checkRepetitions = (top: Element, byId: ReadonlyMap<string, Element>): void => {
  const counts = new Map<Element, number>()
  const open = new Set<Element>()
  const count = (element: Element): number => {
    const known = counts.get(element)
    if (known !== undefined) return known
    // A circle, or a chain that is too long to be a plan.
    if (open.has(element) || open.size > 3 * MAX_DEPTH) throw tooComplex()
    open.add(element)
    const target = element.repeats === null ? undefined : byId.get(element.repeats)
    let total = 1 + (target ? count(target) : 0)
    for (const child of element.children) total += count(child)
    if (total > MAX_ELEMENTS) throw tooComplex()
    open.delete(element)
    counts.set(element, total)
    return total
  }
  count(top)
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  px: 1,
  pt: 4 / 3,
  pc: 16,
  mm: 96 / 25.4,
  cm: 96 / 2.54,
  in: 96
}

/** A length in pixels; null for a percentage and for none. */
const lengthOf = (text: string | undefined): number | null => {
  const [, number, unit = ''] = /^\s*([\d.]+(?:e[+-]?\d+)?)\s*(px|pt|pc|mm|cm|in|)\s*$/i.exec(text ?? '') ?? []
  const pixels = Number(number) * (UNITS[unit.toLowerCase()] ?? Number.NaN)
  return Number.isFinite(pixels) && pixels > 0 ? pixels : null
}

/** The size in pixels, and the part of the drawing that fills it. */
const sizeOf = (root: Attributes): PixelSize & { readonly viewBox: string } => {
  const [x, y, boxWidth = 0, boxHeight = 0, ...more] = (root.get('viewBox') ?? '')
    .trim()
    .split(/[\s,]+/)
    .map(Number)
  const hasBox = boxWidth > 0 && boxHeight > 0 && Number.isFinite(x) && Number.isFinite(y) && more.length === 0
  const width = lengthOf(root.get('width')) ?? (hasBox ? boxWidth : null)
  const height = lengthOf(root.get('height')) ?? (hasBox ? boxHeight : null)
  if (width === null || height === null) throw new SvgError('The SVG file has neither a size nor a viewBox.')
  const scale = LONGEST_SIDE / Math.max(width, height)
  const [fullWidth, fullHeight] = [Math.round(width * scale), Math.round(height * scale)]
  if (!(fullWidth >= 1 && fullHeight >= 1)) throw new SvgError('The SVG file has no usable size.')
  const viewBox = hasBox ? [x, y, boxWidth, boxHeight] : [0, 0, width, height]
  return { width: fullWidth, height: fullHeight, viewBox: viewBox.join(' ') }
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
