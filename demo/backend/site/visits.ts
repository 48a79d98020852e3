import { VISIT_KINDS, type VisitKind } from '../../visit-schema.js'
import type { Fields } from '../world.js'
import { COMPANIES, CONTRACTORS, FIRST_NAMES, LAST_NAMES } from './names.js'

const HOUR_MINUTES = 60
const DAY_MINUTES = 24 * HOUR_MINUTES

const ON_SITE: Readonly<Record<VisitKind, number>> = { visitor: 30, contractor: 20 }
const EXPECTED = 12
const LEFT = 16

/** The visitor who has not left in time, for the list of alerts. */
const OVERDUE = 7

/** A time relative to the start, in minutes. */
type In = (minutes: number) => string

interface Guest extends Fields {
  readonly id: string
  readonly kind: VisitKind
}

/** Numbers from 1 to `count`. */
const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)

const companyOf = (kind: VisitKind, number: number): string | undefined => {
  const companies = kind === 'visitor' ? COMPANIES : CONTRACTORS
  return companies[number % companies.length]
}

/** Visitors stay for hours, a few of them for days; contractors for weeks. */
const expectedEnd = (kind: VisitKind, number: number): number => {
  if (kind === 'contractor') return number * DAY_MINUTES
  return number === OVERDUE ? -25 : 2 * HOUR_MINUTES + ((number * 523) % (3 * DAY_MINUTES))
}

/** Those who are on site now. Each of them carries a transmitter. */
export const guestsOnSite = (hosts: number, fullName: () => string, after: In): Guest[] =>
  VISIT_KINDS.flatMap((kind) =>
    numbers(ON_SITE[kind]).map((number) => {
      const arrival = -30 - ((number * 37) % (kind === 'visitor' ? 300 : 3 * DAY_MINUTES))
      return {
        id: `${kind}-${number}`,
        kind,
        name: fullName(),
        company: companyOf(kind, number),
        hostId: String(((number * 11) % hosts) + 1),
        expectedFrom: after(arrival),
        expectedTo: after(expectedEnd(kind, number)),
        checkedInAt: after(arrival + (number % 9))
      }
    })
  )

/** Those who come later, and those who have left. */
export const otherGuests = (hosts: number, after: In): Guest[] =>
  numbers(EXPECTED + LEFT).map((number) => {
    const kind = number % 5 === 0 ? 'contractor' : 'visitor'
    const isExpected = number <= EXPECTED
    const from = isExpected ? number * 55 : -(number - EXPECTED) * 7 * HOUR_MINUTES
    const name = [FIRST_NAMES[(number * 7) % FIRST_NAMES.length], LAST_NAMES[(number * 5) % LAST_NAMES.length]].join(
      ' '
    )
    const past = { checkedInAt: after(from + 4), checkedOutAt: after(from + 95 + number) }
    return {
      id: `guest-${number}`,
      kind,
      name,
      company: companyOf(kind, number),
      hostId: String(((number * 13) % hosts) + 1),
      email: `${name.replace(' ', '.')}@guest.example`.toLowerCase(),
      expectedFrom: after(from),
      expectedTo: after(from + 2 * HOUR_MINUTES),
      ...(!isExpected && past)
    }
  })
