// The times of entries (`entry_time`). A number is Unix milliseconds, a string is an ISO 8601 date and time; everything else
// is no time.

import { parseString, sliceText } from '../codec/json.js'

/** Result for a value that is not a time. Every comparison with it is false. */
export const NO_TIME = Number.NaN

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

// Basic or extended format. A time without an offset is UTC, so that all nodes agree on it.
const ISO_8601 =
  /^(\d{4}|[+-]\d{6})-?(\d\d)-?(\d\d)(?:[Tt ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)?)?$/

/** Milliseconds since 1970, with fractions; `NO_TIME` for a text that is not ISO 8601. */
export const parseIsoTime = (text: string): number => {
  const json = Buffer.from(text)
  return parseCommonForm(json, 0, json.length) ?? parseAnyForm(text)
}

const parseAnyForm = (text: string): number => {
  const match = ISO_8601.exec(text)
  if (match === null) return NO_TIME
  const [year, month, day, hour, minute, second, , , offsetHour, offsetMinute] = match
    .slice(1)
    .map((part) => Number(part ?? 0))
  const midnight = dayMs(year ?? 0, month ?? 0, day ?? 0)
  const time = timeOfDayMs(hour ?? 0, minute ?? 0, second ?? 0)
  const offset = offsetHour === 24 ? NO_TIME : timeOfDayMs(offsetHour ?? 0, offsetMinute ?? 0, 0)
  const fraction = Number(`0.${match[7] ?? 0}`) * 1000
  return midnight + time + fraction - (match[8] === '-' ? -offset : offset)
}

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

/** The start of a day; `NO_TIME` for a date that does not exist. Years start in March, so that February is the last month. */
const dayMs = (year: number, month: number, day: number): number => {
  if (!(month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month))) return NO_TIME
  const marchYear = month > 2 ? year : year - 1
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1
  const days = 365 * marchYear + Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400)
  return (days + dayOfYear - DAYS_TO_1970) * DAY_MS
}

/** From the 1st of March of the year 0. */
const DAYS_TO_1970 = 719_468

const daysIn = (year: number, month: number): number => {
  if (month !== 2) return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
}

/** `NO_TIME` for a time that does not exist. ISO 8601 allows 24:00:00 for the end of a day, and a leap second. */
const timeOfDayMs = (hour: number, minute: number, second: number): number => {
  const isValid = (hour < 24 && minute < 60 && second <= 60) || (hour === 24 && minute === 0 && second === 0)
  return isValid ? (hour * 60 + minute) * MINUTE_MS + second * 1000 : NO_TIME
}

/** The time in a string or number, from `start` to `end` of a JSON text; `NO_TIME` for every other value. */
export const timeOf = (json: Buffer, start: number, end: number): number => {
  const first = json[start] ?? 0
  if (first === 0x22) return parseCommonForm(json, start + 1, end - 1) ?? timeOfString(sliceText(json, start, end))
  const isNumber = first === 0x2d || (first >= 0x30 && first <= 0x39)
  const number = isNumber ? Number(sliceText(json, start, end)) : NO_TIME
  return Number.isFinite(number) ? number : NO_TIME
}

const timeOfString = (json: string): number =>
  json.includes('\\') ? parseIsoTime(parseString(json) ?? '') : parseAnyForm(json.slice(1, -1))
