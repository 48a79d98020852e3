import { fastifyCookie, type SerializeOptions } from '@fastify/cookie'
import type { FastifyReply } from 'fastify'

const NO_VALUES: readonly string[] = []

/**
 * The distinct values of a cookie, at most two. Parsers differ in which duplicate they choose, and a sibling host can set
 * one, so callers must treat a second value as an attack. Values for which `isAbsent` holds are ignored.
 */
export const cookieValues = (
  header: string | undefined,
  name: string,
  isAbsent: (value: string) => boolean = () => false
): readonly string[] => {
  if (header === undefined || !header.includes(name)) return NO_VALUES
  const values: string[] = []
  for (const pair of header.split(';')) {
    // The parser returns the first of several values, so each pair is parsed on its own. It trims only space and tab
    // (RFC 6265): trimming byte 0xA0 too would let a sibling host set a cookie with the prefix `__Host-`.
    const value = pair.includes(name) ? fastifyCookie.parse(pair, PARSE_OPTIONS)[name] : undefined
    if (value === undefined || isAbsent(value) || values.includes(value)) continue
    values.push(value)
    if (values.length === 2) break
  }
  return values
}

/** Removes quotes, and decodes once: hosting platforms percent-encode cookie values. */
const decodeValue = (value: string): string => {
  const unquoted = value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
  if (!unquoted.includes('%')) return unquoted
  try {
    return decodeURIComponent(unquoted)
  } catch {
    return unquoted
  }
}

const PARSE_OPTIONS = { decode: decodeValue }

/** The options of all our cookies. Without Domain, they are sent to this host only. */
export const cookieOptions = (config: { readonly secure: boolean }): SerializeOptions => ({
  path: '/',
  sameSite: 'lax',
  secure: config.secure
})

/** Not `reply.setCookie`, which adds its header in an onSend hook: forwarded responses bypass those hooks. */
export const setCookie = (reply: FastifyReply, name: string, value: string, options: SerializeOptions): void => {
  reply.header('set-cookie', reply.server.serializeCookie(name, value, options))
}
