import { isOriginPattern } from '../../shared/origin-pattern.js'
import { globTest } from '../core/nodes/glob.js'

const GLOB_CHARACTER = /[*?[{\\]/

/** Whether an allowed origin is a glob. In `http://[::1]:3000` the brackets belong to the address. */
export const isOriginGlob = (text: string): boolean =>
  text.includes('*') || (GLOB_CHARACTER.test(text) && !isOriginPattern(text))

/** `null`, the origin of pages without one, and `file://`, which has no host. */
const WITHOUT_HOST = /^(?:null|[a-z][a-z0-9+.-]*:\/\/)$/i

/** Whether the text is an entry of `client.allowed_origins` that can match. */
export const isAllowedOriginEntry = (text: string): boolean =>
  isOriginGlob(text) ? globTest(text) !== null : isOriginPattern(text) || WITHOUT_HOST.test(text)

/** The origins that browsers can send. A star must not match a path, a user or an empty label. */
const BROWSER_ORIGIN = /^(?:null|[a-z][a-z0-9+.-]*:\/\/(?:[^\s/?#@.\\][^\s/?#@\\]*)?)$/

/** A host has at most 253 characters. */
const MAX_ORIGIN_LENGTH = 512

/** Matches a lower-case glob, as Centrifugo does: `*` stands for any text. The origin must be in lower case. */
export const originTest = (glob: string): ((origin: string) => boolean) => {
  const matches = globTest(glob)
  return (origin) => origin.length <= MAX_ORIGIN_LENGTH && BROWSER_ORIGIN.test(origin) && matches?.(origin) === true
}
