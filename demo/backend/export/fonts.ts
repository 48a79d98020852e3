import { readFile } from 'node:fs/promises'
import { create, type Font } from 'fontkit'
import subsetFont from 'subset-font'
import type { Typesetter } from './text-lines.js'

// The fonts of documents. The packages contain each family in several files by Unicode range, for browsers; a file is
// loaded when a text needs it. Of each, a document contains only the glyphs that it uses.

/** A file of a family, which contains a part of its characters. */
interface FontFile {
  readonly name: string
  readonly url: string
  /** First and last code points. Not all of them need to have a glyph. */
  readonly ranges: readonly (readonly [number, number])[]
  /** Of a variable font: the instance that is used. */
  readonly variation: Readonly<Record<string, number>>
}

/** A loaded file. */
interface FontFace {
  readonly name: string
  /** A static TrueType font. */
  readonly data: Buffer
  readonly font: Font
}

const REGULAR = { wght: 400 }

// The addresses are literals, because the container image includes the packages that it finds in the code.
const PACKAGES = {
  'noto-sans': import.meta.resolve('@fontsource-variable/noto-sans/unicode.json'),
  vazirmatn: import.meta.resolve('@fontsource-variable/vazirmatn/unicode.json'),
  'noto-sans-hebrew': import.meta.resolve('@fontsource-variable/noto-sans-hebrew/unicode.json'),
  'noto-sans-thai': import.meta.resolve('@fontsource-variable/noto-sans-thai/unicode.json'),
  'noto-sans-jp': import.meta.resolve('@fontsource-variable/noto-sans-jp/unicode.json'),
  'noto-sans-sc': import.meta.resolve('@fontsource-variable/noto-sans-sc/unicode.json'),
  'noto-sans-kr': import.meta.resolve('@fontsource-variable/noto-sans-kr/unicode.json')
}
type Family = keyof typeof PACKAGES

/** Pixel letters for all scripts of the basic plane. */
const LAST_RESORT: FontFile = {
  name: 'unifont',
  url: import.meta.resolve('@fontsource/unifont/files/unifont-latin-400-normal.woff2'),
  ranges: [[0, 0x10ffff]],
  variation: {}
}

/** Chinese and Japanese share characters that they write differently. Kana show that a text is Japanese. */
const KANA = /[\p{Script=Hiragana}\p{Script=Katakana}]/u
const COMMON: readonly Family[] = ['noto-sans', 'vazirmatn', 'noto-sans-hebrew', 'noto-sans-thai']
const JAPANESE: readonly Family[] = [...COMMON, 'noto-sans-jp', 'noto-sans-sc', 'noto-sans-kr']
const CHINESE: readonly Family[] = [...COMMON, 'noto-sans-sc', 'noto-sans-kr', 'noto-sans-jp']

/** Characters without a shape, such as joiners, need no glyph. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/u

const files = new Map<Family, Promise<readonly FontFile[]>>()
const faces = new Map<string, Promise<FontFace>>()

const cached = <Key, Value>(cache: Map<Key, Value>, key: Key, make: () => Value): Value => {
  const value = cache.get(key) ?? make()
  cache.set(key, value)
  return value
}

const filesOf = (family: Family): Promise<readonly FontFile[]> =>
  cached(files, family, async () => {
    const index = PACKAGES[family]
    // A file of the package: the ranges by subset.
    const subsets: Readonly<Record<string, string>> = JSON.parse(await readFile(new URL(index), 'utf8'))
    return Object.entries(subsets).map(([subset, ranges]) => {
      const name = `${family}-${subset.replace(/[[\]]/g, '')}`
      const url = new URL(`files/${name}-wght-normal.woff2`, index).href
      return { name, url, ranges: rangesIn(ranges), variation: REGULAR }
    })
  })

/** Reads "U+0000-00ff,U+0131". */
const rangesIn = (text: string): (readonly [number, number])[] =>
  text.split(',').map((range) => {
    const [first = '', last = first] = range.trim().replace(/^U\+/i, '').split('-')
    return [Number.parseInt(first, 16), Number.parseInt(last, 16)]
  })

const load = ({ name, url, variation }: FontFile): Promise<FontFace> =>
  cached(faces, name, async () => {
    const options = { keepAllGlyphs: true, targetFormat: 'sfnt', variationAxes: variation } as const
    const data = renamed(await subsetFont(await readFile(new URL(url)), '', options), name)
    // A file contains one font, not a collection.
    return { name, data, font: create(data) as Font }
  })

const DIRECTORY_START = 12
const DIRECTORY_ENTRY = 16

/**
 * Replaces the table of names by one with a PostScript name only. All files of a family have the same names, and pdfkit
 * merges fonts with equal names.
 */
const renamed = (data: Buffer, name: string): Buffer => {
  const text = Buffer.from(name, 'utf16le').swap16()
  // Version, number of records, start of the texts; then platform (Windows), encoding (Unicode), language (English), kind
  // (PostScript name), length and start of the text.
  const table = [0, 1, 18, 3, 1, 0x409, 6, text.length, 0]
  const names = Buffer.concat([...table.map(uint16), text])
  for (let entry = 0; entry < data.readUInt16BE(4); entry += 1) {
    const start = DIRECTORY_START + entry * DIRECTORY_ENTRY
    if (data.toString('latin1', start, start + 4) !== 'name') continue
    data.writeUInt32BE(data.length, start + 8)
    data.writeUInt32BE(names.length, start + 12)
  }
  return Buffer.concat([data, names])
}

const uint16 = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff])

const covers = ({ font }: FontFace, grapheme: string): boolean =>
  [...grapheme].every(
    (character) => INVISIBLE.test(character) || font.hasGlyphForCodePoint(character.codePointAt(0) ?? 0)
  )

/** The first font of the chain that has all glyphs of a character with its marks, else the one of last resort. */
const faceFor = async (grapheme: string, families: readonly Family[]): Promise<FontFace> => {
  const codePoint = grapheme.codePointAt(0) ?? 0
  for (const family of families)
    for (const file of await filesOf(family)) {
      if (!file.ranges.some(([first, last]) => codePoint >= first && codePoint <= last)) continue
      const face = await load(file)
      if (covers(face, grapheme)) return face
    }
  return load(LAST_RESORT)
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })
/** Punctuation, digits and spaces of a sentence are in the font of the letter before them, if it has them. */
const NEUTRAL = /^[\p{Script=Common}]$/u

/** Loads the fonts of these texts into a document. */
export const loadTypesetter = async (document: PDFKit.PDFDocument, texts: readonly string[]): Promise<Typesetter> => {
  const used = new Map<string, FontFace>()
  const chosen = new Map<string, string>()
  const keyOf = (grapheme: string, isJapanese: boolean): string => `${isJapanese ? 'ja' : 'zh'} ${grapheme}`
  for (const text of texts) {
    const isJapanese = KANA.test(text)
    for (const { segment } of graphemes.segment(text)) {
      const key = keyOf(segment, isJapanese)
      if (chosen.has(key)) continue
      const face = await faceFor(segment, isJapanese ? JAPANESE : CHINESE)
      chosen.set(key, face.name)
      used.set(face.name, face)
    }
  }
  for (const { name, data } of used.values()) document.registerFont(name, data)

  return {
    fontOf: (grapheme, context, previous) => {
      const before = used.get(previous ?? '')
      if (before && NEUTRAL.test(grapheme) && covers(before, grapheme)) return before.name
      return chosen.get(keyOf(grapheme, KANA.test(context))) ?? LAST_RESORT.name
    },
    // An empty list of features makes pdfkit shape the text as a whole instead of word by word.
    widthOf: (font, text) => document.font(font).widthOfString(text, { features: [] })
  }
}
