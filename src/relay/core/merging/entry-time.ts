// The times of entries (`entry_time`). A number is Unix milliseconds, a string is an ISO 8601 date and time; everything else
// is no time.

import { dayMs, NO_TIME, parseIsoTime, timeOfDayMs } from '../../../../schemas/iso-time.js'
import { parseString, sliceText } from '../codec/json.js'

/** The time in a string or number, from `start` to `end` of a JSON text; `NO_TIME` for every other value. */
export const timeOf = (json: Buffer, start: number, end: number): number => {
  const first = json[start] ?? 0
  if (first === 0x22) return parseCommonForm(json, start + 1, end - 1) ?? timeOfString(sliceText(json, start, end))
  const isNumber = first === 0x2d || (first >= 0x30 && first <= 0x39)
  const number = isNumber ? Number(sliceText(json, start, end)) : NO_TIME
  return Number.isFinite(number) ? number : NO_TIME
}

const timeOfString = (json: string): number =>
  parseIsoTime(json.includes('\\') ? (parseString(json) ?? '') : json.slice(1, -1))

/**
 * `2026-11-16T08:55:36Z`, also with a fraction, from `start` to `end`; null for any other form. Ten times as fast
 * as the regular expression.
 */
const parseCommonForm = (json: Buffer, start: number, end: number): number | null => {
  const length = end - start
  if (length < 20 || length > 27 || json[end - 1] !== 0x5a || json[start + 10] !== 0x54) return null
  if (json[start + 4] !== 0x2d || json[start + 7] !== 0x2d) return null
  if (json[start + 13] !== 0x3a || json[start + 16] !== 0x3a) return null
  const year = digits(json, start, start + 4)
  const month = digits(json, start + 5, start + 7)
  const day = digits(json, start + 8, start + 10)
  const hour = digits(json, start + 11, start + 13)
  const minute = digits(json, start + 14, start + 16)
  const second = digits(json, start + 17, start + 19)
  let fraction = 0
  if (length > 20) {
    if (length === 21 || json[start + 19] !== 0x2e) return null
    fraction = (digits(json, start + 20, end - 1) / 10 ** (length - 21)) * 1000
  }
  const ms = dayMs(year, month, day) + timeOfDayMs(hour, minute, second) + fraction
  return Number.isNaN(ms) ? null : ms
}

/** The number from `start` to `end`; `NO_TIME` if it contains anything but digits. */
const digits = (json: Buffer, start: number, end: number): number => {
  let value = 0
  for (let index = start; index < end; index++) {
    const digit = (json[index] ?? 0) - 0x30
    if (digit < 0 || digit > 9) return NO_TIME
    value = value * 10 + digit
  }
  return value
}
