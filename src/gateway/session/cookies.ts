import type { SerializeOptions } from '@fastify/cookie'
import type { FastifyReply } from 'fastify'

const NONE: readonly string[] = []

/**
 * The different values that a Cookie header gives a name, two of them at most. More than one is a sign of somebody
 * planting a cookie from a neighbouring host: parsers pick different ones, so callers must not pick at all. Values for
 * which `isAbsent` holds are left out.
 */
export const cookieValues = (
  header: string | undefined,
  name: string,
  isAbsent: (value: string) => boolean = () => false
): readonly string[] => {
  if (header === undefined || !header.includes(name)) return NONE
  const values: string[] = []
  for (let start = 0, end = 0; start < header.length; start = end + 1) {
    end = header.indexOf(';', start)
    if (end === -1) end = header.length
    const equals = header.indexOf('=', start)
    if (equals === -1 || equals > end || trimmed(header, start, equals) !== name) continue
    const value = decoded(unquoted(trimmed(header, equals + 1, end)))
    if (isAbsent(value) || values.includes(value)) continue
    // Two are enough to know: comparing a thousand with each other takes milliseconds.
    if (values.push(value) === 2) break
  }
  return values
}

/**
 * Space and tab only (RFC 6265). `String.trim` also removes byte 0xA0, and would turn a cookie that a neighbouring host
 * may set into one with the protected prefix `__Host-`.
 */
const trimmed = (text: string, start: number, end: number): string => {
  let [first, last] = [start, end]
  while (first < last && isBlank(text[first])) first += 1
  while (last > first && isBlank(text[last - 1])) last -= 1
  return text.slice(first, last)
}

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'

const unquoted = (value: string): string =>
  value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value

/** Hosting platforms percent-encode cookie values; once, so a value that was encoded twice stays wrong. */
const decoded = (value: string): string => {
  if (!value.includes('%')) return value
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

/** What all our cookies have in common. They carry no Domain, so they stay on this host. */
export const cookieOptions = (config: { readonly secure: boolean }): SerializeOptions => ({
  path: '/',
  sameSite: 'lax',
  secure: config.secure
})

/** Goes around the plugin's own bookkeeping, which would parse every Cookie header and look at every reply. */
export const setCookie = (reply: FastifyReply, name: string, value: string, options: SerializeOptions): void => {
  reply.header('set-cookie', reply.server.serializeCookie(name, value, options))
}
