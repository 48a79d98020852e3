import bidiModule, { type Bidi } from 'bidi-js'
import LineBreaker from 'linebreak'

// Breaks text into lines and orders each line for display: right-to-left scripts, mirrored brackets, fallback fonts. PDF
// readers do none of this; a document contains glyphs with positions.

/** A part of a line with one font. */
export interface Run {
  readonly font: string
  readonly text: string
  readonly width: number
}

export interface Line {
  /** From left to right. */
  readonly runs: readonly Run[]
  readonly width: number
}

/** The fonts of a document. */
export interface Typesetter {
  /** The font of one character with its marks. `context` is the whole text, `previous` the font before. */
  fontOf(grapheme: string, context: string, previous: string | undefined): string
  widthOf(font: string, text: string): number
}

// The types describe an ES module. Node.js loads the CommonJS file of the package, which exports the function itself.
const bidi = (bidiModule as unknown as () => Bidi)()
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })
/** Control characters would be drawn as boxes; directional ones could reorder a line. */
const CONTROLS = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
/** The font engine reverses text of these scripts itself. */
const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Samaritan}\p{Script=Mandaic}\p{Script=Adlam}]/u

/** The vowel am after a tone mark consists of a ring below the mark and the vowel aa. */
const THAI_AM = /([\u0e48-\u0e4b])\u0e33/g

const graphemesOf = (text: string): string[] => [...graphemes.segment(text)].map(({ segment }) => segment)

/** The text without control characters, and with composed letters. Paragraphs end with \n. */
export const shownText = (text: string): string =>
  text
    .normalize('NFC')
    .split(/\r\n|\r|\n|\u2028|\u2029/)
    .map((paragraph) => paragraph.replace(CONTROLS, ' '))
    .join('\n')

/** The lines of a text that is at most `maxWidth` wide. Nothing is omitted: a word that is too long is broken. */
export const linesOf = (typesetter: Typesetter, text: string, maxWidth: number): Line[] =>
  shownText(text)
    .split('\n')
    .flatMap((paragraph) => paragraphLines(typesetter, paragraph, maxWidth))

const paragraphLines = (typesetter: Typesetter, text: string, maxWidth: number): Line[] => {
  const { levels } = bidi.getEmbeddingLevels(text)
  return brokenLines(typesetter, text, maxWidth).map(({ start, end }) => {
    const runs = inDisplayOrder(fontParts(typesetter, text, levels, start, end)).map(({ font, level, characters }) => {
      const shown = displayText(characters, level)
      return { font, text: shown, width: typesetter.widthOf(font, shown) }
    })
    return { runs, width: runs.reduce((sum, { width }) => sum + width, 0) }
  })
}

interface Span {
  readonly start: number
  readonly end: number
}

/** The spans of the lines without white space at their ends. */
const brokenLines = (typesetter: Typesetter, text: string, maxWidth: number): Span[] => {
  const lines: Span[] = []
  let start = 0
  let end = 0
  const isTooLong = (to: number): boolean => widthOf(typesetter, text, start, to) > maxWidth
  for (const next of breakPositions(text)) {
    if (end > start && isTooLong(next)) {
      lines.push({ start, end })
      start = end
    }
    end = next
    // A single word that does not fit.
    while (isTooLong(end)) {
      const fitting = fittingEnd(typesetter, text, { start, end }, maxWidth)
      if (fitting === end) break
      lines.push({ start, end: fitting })
      start = fitting
    }
  }
  return [...lines, { start, end }].map((line) => trimmed(text, line))
}

/** The positions after which a line may end, by the rules of Unicode. */
const breakPositions = (text: string): number[] => {
  const breaker = new LineBreaker(text)
  const positions: number[] = []
  for (let found = breaker.nextBreak(); found !== null; found = breaker.nextBreak()) positions.push(found.position)
  return positions
}

/** The end of the longest beginning that fits, at least one character. */
const fittingEnd = (typesetter: Typesetter, text: string, { start, end }: Span, maxWidth: number): number => {
  let fitting = start
  for (const grapheme of graphemesOf(text.slice(start, end))) {
    const next = fitting + grapheme.length
    if (fitting > start && widthOf(typesetter, text, start, next) > maxWidth) break
    fitting = next
  }
  return fitting
}

const trimmed = (text: string, { start, end }: Span): Span => {
  const line = text.slice(start, end)
  const leading = line.length - line.trimStart().length
  return { start: start + leading, end: start + Math.max(line.trimEnd().length, leading) }
}

/** Without white space at the end, which may exceed the line. */
const widthOf = (typesetter: Typesetter, text: string, start: number, end: number): number =>
  sameFontParts(typesetter, text, { start, end: start + text.slice(start, end).trimEnd().length }).reduce(
    (sum, { font, characters }) => sum + typesetter.widthOf(font, characters.join('')),
    0
  )

interface Part {
  readonly font: string
  /** Even: from left to right; odd: from right to left. */
  readonly level: number
  readonly characters: readonly string[]
}

const sameFontParts = (typesetter: Typesetter, text: string, { start, end }: Span): Part[] =>
  fontParts(typesetter, text, new Uint8Array(text.length), start, end)

/** Splits a line where the direction or the font changes. */
const fontParts = (typesetter: Typesetter, text: string, levels: Uint8Array, start: number, end: number): Part[] => {
  const parts: { font: string; level: number; characters: string[] }[] = []
  let index = start
  for (const grapheme of graphemesOf(text.slice(start, end))) {
    const level = levels[index] ?? 0
    const last = parts.at(-1)
    const font = typesetter.fontOf(grapheme, text, last?.font)
    if (last?.font === font && last.level === level) last.characters.push(grapheme)
    else parts.push({ font, level, characters: [grapheme] })
    index += grapheme.length
  }
  return parts
}

/** Rule L2 of the bidirectional algorithm, applied to parts: from the highest level down, reverse what is nested. */
const inDisplayOrder = (parts: readonly Part[]): Part[] => {
  const highest = Math.max(0, ...parts.map(({ level }) => level))
  let ordered = [...parts]
  for (let level = highest; level > 0; level -= 1) {
    const result: Part[] = []
    let nested: Part[] = []
    for (const part of ordered) {
      if (part.level >= level) nested.push(part)
      else {
        result.push(...nested.reverse(), part)
        nested = []
      }
    }
    ordered = [...result, ...nested.reverse()]
  }
  return ordered
}

/** The text for the font engine, which shapes from left to right unless the script is written from right to left. */
const displayText = (characters: readonly string[], level: number): string => {
  const isReversed = level % 2 === 1
  const mirrored = isReversed
    ? characters.map((character) => bidi.getMirroredCharacter(character) ?? character)
    : characters
  const isReversedByEngine = RIGHT_TO_LEFT.test(mirrored.join(''))
  return (isReversed === isReversedByEngine ? mirrored : mirrored.toReversed())
    .join('')
    .replace(THAI_AM, '\u0e4d$1\u0e32')
}
