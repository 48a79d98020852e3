import { linearRegExp } from '../../../shared/linear-regexp.js'

/** The parts of a pattern: a character class, a backslash and the character after it, stars, or any other character. */
const PARTS = /\[(?:(?<negation>!)|(?!!))(?<members>(?:\\.|[^\]\\])+)\]|\\(?<escaped>.)|(?<stars>\*+)|(?<other>.)/gsu

/** Characters with a meaning in regular expressions. */
const SPECIAL = /[\\^$.*+?()[\]{}|-]/gu

const literal = (text: string): string => text.replace(SPECIAL, '\\$&')

/** The members of a class, in which only `-` between two characters and `\` have a meaning. */
const classMembers = (members: string): string =>
  members.replace(/\\(.)|[\^[\]&~]/gsu, (member, escaped?: string) => literal(escaped ?? member))

/**
 * Compiles a pattern for channel names: `*` matches any text, `?` one character, `[a-c]` one of these characters, `[!a-c]`
 * another one, and `{a,b*}` each of these patterns. A backslash takes the meaning of the next character. Null if a class or a
 * list of patterns is malformed.
 */
export const globTest = (pattern: string): ((name: string) => boolean) | null => {
  let source = ''
  let depth = 0
  for (const { groups = {} } of pattern.matchAll(PARTS)) {
    const { members, negation, escaped, stars, other = '' } = groups
    if (members !== undefined) source += `[${negation === undefined ? '' : '^'}${classMembers(members)}]`
    else if (escaped !== undefined) source += literal(escaped)
    else if (stars !== undefined) source += '.*'
    else if (other === '[' || other === '\\') return null
    else if (other === '?') source += '.'
    else if (other === '{') source += '(?:'
    else if (other === '}' && depth > 0) source += ')'
    else source += other === ',' && depth > 0 ? '|' : literal(other)
    if (other === '{') depth += 1
    if (other === '}' && depth > 0) depth -= 1
  }
  return depth > 0 ? null : compiled(`^(?s:${source})$`)
}

const compiled = (source: string): ((name: string) => boolean) | null => {
  try {
    const expression = linearRegExp(source)
    return (name) => expression.test(name)
  } catch {
    // A range whose end is before its start.
    return null
  }
}
