/** The first and last code points of a set of characters, in ascending order. */
type Ranges = readonly (readonly [first: number, last: number])[]

const LAST_CODE_POINT = 0x10_ff_ff

/** Expressions in the syntax of RE2. A text matches if it matches `main` and each look-ahead that is not negated. */
export interface LinearAlternative {
  readonly main: string
  /** Only at a known position, where each is an expression of its own: `^(?=.*\d)(?!admin)\w+$`. */
  readonly lookAheads: readonly { readonly source: string; readonly isNegated: boolean }[]
}

/**
 * Rewrites a regular expression of JavaScript in the syntax of RE2, for tests only: groups capture nothing, and lazy
 * quantifiers become greedy ones. The text is compared by code points, as with the flag `u`. Throws a `SyntaxError` for an
 * invalid expression, and for what cannot be rewritten: back references, look-behind, and look-ahead
 * at a position that varies.
 */
export const toLinearSyntax = (source: string): readonly LinearAlternative[] =>
  new Translation(source, isUnicodeSyntax(source)).alternatives()

/** Whether the stricter syntax of the flag `u` applies. Many expressions have escapes such as `\-`, which it does not have. */
const isUnicodeSyntax = (source: string): boolean => {
  try {
    new RegExp(source, 'u')
    return true
  } catch (error) {
    // Without the flag, `\p{L}` would be the letter p.
    if (/\\[pP]\{|\\u\{/.test(source)) throw error
    new RegExp(source)
    return false
  }
}

const QUANTIFIER = /(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/y
/** One character or class, as `inClass` writes it. */
const ONE_CHARACTER = /^(?:\\x\{[\da-f]+\}|\[[^\]]*\])$/

/** Reads an expression that V8 has accepted. */
class Translation {
  readonly #source: string
  readonly #isUnicode: boolean
  #position = 0

  constructor(source: string, isUnicode: boolean) {
    this.#source = source
    this.#isUnicode = isUnicode
  }

  alternatives(): LinearAlternative[] {
    const alternatives: LinearAlternative[] = []
    do {
      const lookAheads: { source: string; isNegated: boolean }[] = []
      let main = ''
      // Whether it matches at one position only.
      let isFixed = this.#isAt('^')
      while (!this.#isAtEnd()) {
        const sign = isFixed ? this.#match(/\(\?([=!])/y)?.[1] : undefined
        if (sign === undefined) {
          const term = this.#term()
          main += term
          isFixed &&= term === '^' || ONE_CHARACTER.test(term)
        } else lookAheads.push({ source: main + this.#lookAhead(), isNegated: sign === '!' })
      }
      alternatives.push({ main, lookAheads })
    } while (this.#take('|'))
    return alternatives
  }

  #lookAhead(): string {
    const lookAhead = this.#groupEnd()
    if (this.#match(QUANTIFIER) !== null) throw new SyntaxError('look-ahead with a quantifier is not supported')
    return lookAhead
  }

  #isAtEnd(): boolean {
    return this.#position >= this.#source.length || this.#isAt('|') || this.#isAt(')')
  }

  #terms(): string {
    let terms = ''
    while (!this.#isAtEnd()) terms += this.#term()
    return terms
  }

  #isAt(text: string): boolean {
    return this.#source.startsWith(text, this.#position)
  }

  #take(text: string): boolean {
    if (!this.#isAt(text)) return false
    this.#position += text.length
    return true
  }

  /** The match of a sticky expression at the position, which is then behind it. */
  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#position
    const match = pattern.exec(this.#source)
    if (match !== null) this.#position += match[0].length
    return match
  }

  #codePoint(): number {
    const codePoint = this.#source.codePointAt(this.#position) ?? 0
    this.#position += codePoint > 0xff_ff ? 2 : 1
    return codePoint
  }

  #term(): string {
    if (this.#take('^')) return '^'
    if (this.#take('$')) return '\\z'
    const boundary = this.#match(/\\[bB]/y)
    if (boundary !== null) return boundary[0]
    const atom = this.#atom()
    const quantifier = this.#match(QUANTIFIER)
    if (quantifier === null) return atom
    const [, sign, min = '', comma, max = ''] = quantifier
    if (sign !== undefined) return atom + sign
    const least = Number(min)
    return repeated(atom, least, comma === undefined ? least : max === '' ? Number.POSITIVE_INFINITY : Number(max))
  }

  #atom(): string {
    if (this.#take('.')) return inClass(complement(LINE_TERMINATORS))
    if (this.#take('[')) return this.#class()
    if (this.#take('(')) return this.#group()
    return this.#take('\\') ? inClass(this.#escape(false)) : inClass(one(this.#codePoint()))
  }

  #group(): string {
    if (this.#match(/\?<[=!]/y) !== null) throw new SyntaxError('look-behind is not supported')
    if (this.#match(/\?[=!]/y) !== null) {
      throw new SyntaxError('look-ahead is supported only behind "^" and single characters')
    }
    if (this.#match(/\?(?::|<[^>]*>)/y) === null && this.#isAt('?')) throw new SyntaxError('flags are not supported')
    return this.#groupEnd()
  }

  /** The alternatives of a group. The position is behind what opens it. */
  #groupEnd(): string {
    const alternatives = [this.#terms()]
    while (this.#take('|')) alternatives.push(this.#terms())
    this.#take(')')
    return `(?:${alternatives.join('|')})`
  }

  #class(): string {
    const isNegated = this.#take('^')
    const sets: Ranges[] = []
    while (!this.#take(']')) {
      const first = this.#classMember()
      // `[\w-.]` contains a hyphen.
      const isRange = this.#isAt('-') && !this.#isAt('-]')
      if (isRange) this.#take('-')
      const last = isRange ? this.#classMember() : first
      const [low, high] = [singleOf(first), singleOf(last)]
      if (low !== null && high !== null) sets.push([[low, high]])
      else sets.push(first, last, ...(isRange ? [one(HYPHEN)] : []))
    }
    const ranges = union(sets.flat())
    return inClass(isNegated ? complement(ranges) : ranges)
  }

  #classMember(): Ranges {
    return this.#take('\\') ? this.#escape(true) : one(this.#codePoint())
  }

  /** The characters that an escape stands for. The position is behind its backslash. */
  #escape(isInClass: boolean): Ranges {
    const set = this.#match(/[dDsSwW]/y)?.[0]
    if (set !== undefined) {
      const ranges = CLASS_ESCAPES[set.toLowerCase()] ?? []
      return set === set.toLowerCase() ? ranges : complement(ranges)
    }
    const property = this.#isUnicode ? this.#match(/[pP]\{[^}]*\}/y)?.[0] : undefined
    if (property !== undefined) return charactersOf(`\\${property}`)
    if (this.#match(/0(?!\d)/y) !== null) return one(0)
    if (this.#match(/\d/y) !== null) throw new SyntaxError('back references and octal escapes are not supported')
    if (this.#match(/k(?=<)/y) !== null) throw new SyntaxError('back references are not supported')
    const control = this.#match(/c([A-Za-z])/y)?.[1]
    if (control !== undefined) return one(control.charCodeAt(0) % 32)
    if (!this.#isUnicode && this.#isAt('c')) throw new SyntaxError('\\c without a letter is not supported')
    return one(this.#hexEscape() ?? this.#simpleEscape(isInClass))
  }

  /** Null at another escape: without the flag `u`, `\x` may be the letter. */
  #hexEscape(): number | null {
    const pair = this.#match(/u([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})/y)
    if (pair !== null) return String.fromCharCode(hex(pair[1]), hex(pair[2])).codePointAt(0) ?? 0
    const short = this.#match(/x([\da-fA-F]{2})|u([\da-fA-F]{4})/y)
    if (short !== null) return hex(short[1] ?? short[2])
    const long = this.#isUnicode ? this.#match(/u\{([\da-fA-F]+)\}/y) : null
    return long === null ? null : hex(long[1])
  }

  #simpleEscape(isInClass: boolean): number {
    const codePoint = this.#codePoint()
    const letter = String.fromCodePoint(codePoint)
    if (letter === 'b' && isInClass) return BACKSPACE
    const index = CONTROL_ESCAPES.indexOf(letter)
    return index === -1 ? codePoint : TAB + index
  }
}

const BACKSPACE = 8
const HYPHEN = 0x2d
/** The code points of `\t`, `\n`, `\v`, `\f` and `\r` follow each other. */
const CONTROL_ESCAPES = 'tnvfr'
const TAB = 9

const LINE_TERMINATORS: Ranges = [
  [10, 10],
  [13, 13],
  [0x20_28, 0x20_29]
]

const CLASS_ESCAPES: Readonly<Record<string, Ranges>> = {
  d: [[0x30, 0x39]],
  w: [
    [0x30, 0x39],
    [0x41, 0x5a],
    [0x5f, 0x5f],
    [0x61, 0x7a]
  ],
  s: [
    [9, 13],
    [0x20, 0x20],
    [0xa0, 0xa0],
    [0x16_80, 0x16_80],
    [0x20_00, 0x20_0a],
    [0x20_28, 0x20_29],
    [0x20_2f, 0x20_2f],
    [0x20_5f, 0x20_5f],
    [0x30_00, 0x30_00],
    [0xfe_ff, 0xfe_ff]
  ]
}

const hex = (digits = ''): number => Number.parseInt(digits, 16)

const one = (codePoint: number): Ranges => [[codePoint, codePoint]]

const singleOf = (ranges: Ranges): number | null => {
  const [range] = ranges
  return ranges.length === 1 && range !== undefined && range[0] === range[1] ? range[0] : null
}

const union = (ranges: Ranges): Ranges => {
  const merged: [number, number][] = []
  for (const [first, last] of ranges.toSorted(([one], [other]) => one - other)) {
    const previous = merged.at(-1)
    if (previous !== undefined && first <= previous[1] + 1) previous[1] = Math.max(previous[1], last)
    else merged.push([first, last])
  }
  return merged
}

const complement = (ranges: Ranges): Ranges => {
  const gaps: [number, number][] = []
  let next = 0
  for (const [first, last] of union(ranges)) {
    if (first > next) gaps.push([next, first - 1])
    next = last + 1
  }
  if (next <= LAST_CODE_POINT) gaps.push([next, LAST_CODE_POINT])
  return gaps
}

const inClass = (ranges: Ranges): string => {
  const codePoint = singleOf(ranges)
  if (codePoint !== null) return escaped(codePoint)
  if (ranges.length === 0) return `[^${escaped(0)}-${escaped(LAST_CODE_POINT)}]`
  return `[${ranges.map(([first, last]) => `${escaped(first)}-${escaped(last)}`).join('')}]`
}

const escaped = (codePoint: number): string => `\\x{${codePoint.toString(16)}}`

const MAX_COUNT = 1000
/** Each repetition is a copy. */
const MAX_REPETITIONS = 10_000

/** RE2 has counts of up to 1000. The parts of a larger one begin at known counts, so that few of them are active at a time. */
const repeated = (atom: string, min: number, max: number): string => {
  if (Math.max(min, Number.isFinite(max) ? max : 0) > MAX_REPETITIONS) {
    throw new SyntaxError(`counts above ${MAX_REPETITIONS} are not supported`)
  }
  const parts: string[] = []
  let rest = min
  for (; rest > MAX_COUNT; rest -= MAX_COUNT) parts.push(`${atom}{${MAX_COUNT}}`)
  if (max === Number.POSITIVE_INFINITY) return grouped([...parts, `${atom}{${rest},}`])
  if (max - min + rest <= MAX_COUNT) return grouped([...parts, `${atom}{${rest},${max - min + rest}}`])
  return grouped([...parts, ...(rest > 0 ? [`${atom}{${rest}}`] : []), optional(atom, max - min)])
}

const optional = (atom: string, max: number): string =>
  max <= MAX_COUNT
    ? `${atom}{0,${max}}`
    : `(?:${atom}{0,${MAX_COUNT - 1}}|${atom}{${MAX_COUNT}}${optional(atom, max - MAX_COUNT)})`

const grouped = (parts: readonly string[]): string => (parts.length === 1 ? parts.join('') : `(?:${parts.join('')})`)

const knownProperties = new Map<string, Ranges>()

/** The characters of `\p{…}`, from V8: its properties and their names are not those of RE2. */
const charactersOf = (property: string): Ranges => {
  const known = knownProperties.get(property)
  if (known !== undefined) return known
  const members = new RegExp(`${property}+`, 'gu')
  const ranges = BLOCKS.flatMap(([first, last]) => {
    let text = ''
    for (let start = first; start <= last; start += CHUNK) {
      const length = Math.min(CHUNK, last - start + 1)
      text += String.fromCodePoint(...Array.from({ length }, (_, index) => start + index))
    }
    const width = String.fromCodePoint(first).length
    return [...text.matchAll(members)].map(({ 0: run, index }): Ranges[number] => {
      const start = first + index / width
      return [start, start + run.length / width - 1]
    })
  })
  // All surrogates have the same properties.
  const surrogates: Ranges = new RegExp(property, 'u').test('\ud800') ? [[0xd8_00, 0xdf_ff]] : []
  const result = union([...ranges, ...surrogates])
  knownProperties.set(property, result)
  return result
}

/** Far fewer than a call may have arguments. */
const CHUNK = 4096

/** All characters but the surrogates, which would form pairs. In a block, all have the same number of code units. */
const BLOCKS: Ranges = [
  [0, 0xd7_ff],
  [0xe0_00, 0xff_ff],
  [0x1_00_00, LAST_CODE_POINT]
]
