/** Result for a text that is not a time. Every comparison with it is false. */
export const NO_TIME = Number.NaN

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

// Basic or extended format. A time without an offset is UTC, so that all nodes agree on it.
const ISO_8601 =
  /^(\d{4}|[+-]\d{6})-?(\d\d)-?(\d\d)(?:[Tt ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)?)?$/

/**
 * The times in publications: milliseconds since 1970, with fractions; `NO_TIME` for a text that is not ISO 8601. Not
 * `Date.parse`, which reads other texts too, and differently in each browser.
 */
export const parseIsoTime = (text: string): number => {
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

/** The start of a day; `NO_TIME` for a date that does not exist. Years start in March, so that February is the last month. */
export const dayMs = (year: number, month: number, day: number): number => {
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
export const timeOfDayMs = (hour: number, minute: number, second: number): number => {
  const isValid = (hour < 24 && minute < 60 && second <= 60) || (hour === 24 && minute === 0 && second === 0)
  return isValid ? (hour * 60 + minute) * MINUTE_MS + second * 1000 : NO_TIME
}
