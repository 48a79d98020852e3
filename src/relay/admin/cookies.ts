import type { IncomingMessage } from 'node:http'
import type { Headers } from '../edge/http-answer.js'

const NAME = 'relay_admin'

/** Null where there is none, or two that differ: of those nobody knows which one the browser means. */
export const sessionCookie = ({ headers }: IncomingMessage): string | null => {
  const values = (headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${NAME}=`))
    .map((pair) => pair.slice(NAME.length + 1))
  return new Set(values).size === 1 ? (values[0] ?? null) : null
}

/** Until the browser is closed; when it runs out is written in the value. */
export const setSessionCookie = (value: string, isSecure: boolean): Headers => [
  'Set-Cookie',
  `${NAME}=${value}; Path=/admin; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
]

export const CLEAR_SESSION_COOKIE: Headers = [
  'Set-Cookie',
  `${NAME}=; Path=/admin; HttpOnly; SameSite=Strict; Max-Age=0`
]
