import { foldedText } from './folded-text.js'

/**
 * Removes secrets from paths that are logged, recorded or traced. It also recognises other spellings, encodings and
 * separators: the gateway rejects most of them, but they contain the same secret. Declared paths without a parameter are shown.
 */
export class SecretPaths {
  readonly #routes: readonly SecretRoute[]
  readonly #fixedPaths: ReadonlySet<string>
  /** Finds the first fixed word of each route. */
  readonly #firstWords: RegExp

  /** `secretTemplates` are those of the templates whose parameters are secrets: `/api/invitations/{token}`. */
  constructor(secretTemplates: readonly string[], templates: readonly string[]) {
    this.#routes = secretTemplates.map(secretRoute)
    this.#fixedPaths = new Set(templates.filter((template) => !template.includes('{')))
    this.#firstWords = new RegExp(this.#routes.map(({ words: [first = ''] }) => first).join('|'), 'i')
  }

  /** The path without its secret: `/api/invitations/…`. */
  masked(path: string): string {
    // Most paths have none of the words, which is cheap to see.
    if (this.#routes.length === 0 || !this.#firstWords.test(plainForm(path))) return path
    if (this.#fixedPaths.has(path)) return path
    const words = wordsOf(path)
    const shown = this.#routes.flatMap((route) => shownPart(route, path, words) ?? [])
    return shown.reduce((shortest, text) => (text.length < shortest.length ? text : shortest), shown[0] ?? path)
  }
}

// Encoded characters, and bytes that are not ASCII.
const NEEDS_DECODING = /[%\x80-\xff]/

/** The text as a server sees it that decodes and normalises. */
const plainForm = (text: string): string => (NEEDS_DECODING.test(text) ? foldedText(decoded(text)) : text)

/** A route whose path contains a secret. */
interface SecretRoute {
  /** The fixed words of its template before the last parameter. */
  readonly words: readonly string[]
  /** How many of them stand before the first parameter. */
  readonly shown: number
}

const secretRoute = (template: string): SecretRoute => {
  const fixedWords = (text: string): string[] => wordsOf(text.replace(/\{[^{}]*\}/g, '/')).map(({ text }) => text)
  const words = fixedWords(template.slice(0, template.lastIndexOf('{')))
  const shown = fixedWords(template.slice(0, template.indexOf('{'))).length
  // A path without the prefix is another spelling too. As the only word, the prefix must be there.
  return words[0] === 'api' && shown > 1 ? { words: words.slice(1), shown: shown - 1 } : { words, shown }
}

/** The part of a path to show if it has the words of the route in their order and more behind them, else null. */
const shownPart = ({ words, shown }: SecretRoute, path: string, pathWords: readonly Word[]): string | null => {
  let next = 0
  let part = '/…'
  let rest = path
  for (const [count, text] of words.entries()) {
    next = pathWords.findIndex((word, index) => index >= next && word.text === text) + 1
    const found = pathWords[next - 1]
    if (found === undefined) return null
    // A word that the same part of the path contains may be the secret.
    const isWhole = pathWords[next]?.start !== found.start
    if (count < shown) part = isWhole ? `${path.slice(0, found.end)}/…` : `${path.slice(0, found.start)}…`
    rest = path.slice(isWhole ? found.end : found.start)
  }
  return /^\/*$/.test(rest) ? null : part
}

/** A word, and the part of the path between separators that contains it. */
interface Word {
  readonly text: string
  readonly start: number
  readonly end: number
}

// Everything between words, also encoded: `%2f`, or `%252f` if it is encoded twice.
const SEPARATORS = /((?:[^\w%\x80-\xff-]|%(?![\da-f]{2})|%(?:25)*(?:2[0-46-9a-cef]|3[a-f]|40|5[b-e]|60|7[b-d]))+)/i

/** The words of a path for a server that decodes, normalises and ignores letter case. */
const wordsOf = (path: string): Word[] => {
  let end = 0
  return path.split(SEPARATORS).flatMap((part) => {
    const start = end
    end += part.length
    return plainForm(part)
      .toLowerCase()
      .split(/[^\p{L}\p{N}_-]+/u)
      .filter((text) => text !== '')
      .map((text) => ({ text, start, end: start + part.length }))
  })
}

const MAX_ENCODINGS = 3

const decoded = (part: string): string => {
  // Node reads the bytes of a request line as Latin-1.
  let text = NOT_ASCII.test(part) ? Buffer.from(part, 'latin1').toString() : part
  for (let count = 0; count < MAX_ENCODINGS && text.includes('%'); count += 1) text = decodedOnce(text)
  return text
}

const NOT_ASCII = /[\x80-\xff]/

/** Never throws: what is malformed stays as it is, or becomes a replacement character. */
const decodedOnce = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text.replace(/(?:%[\da-f]{2})+/gi, (bytes) => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString())
  }
}
