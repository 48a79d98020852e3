import { matches } from './search.js'
import type { MusterPerson } from './types.js'

// The groups of the muster: everybody is in one of them, and no group changes its total while somebody searches.

export interface MusterGroup {
  readonly status: MusterPerson['status']
  readonly title: string
  readonly tone: 'danger' | 'warning' | 'good'
  /** Those whom the search finds. */
  readonly people: readonly MusterPerson[]
  readonly total: number
}

/** Name, category, company, department, role and place. */
const isFound = (person: MusterPerson, search: string): boolean => {
  const { name, kind, company, department, zoneName, floorName, buildingName, isFirstAider, isFireWarden } = person
  const roles = [isFirstAider && 'first aider', isFireWarden && 'warden']
  const texts = [name, kind, company, department, zoneName, floorName, buildingName, ...roles]
  return matches(texts.filter(Boolean).join(' '), search)
}

/** The titles of the statuses. If people stay where they are, nobody is missing. */
export const statusTitles = (gathers: boolean) =>
  ({ missing: gathers ? 'Missing' : 'Not confirmed', unknown: 'No position', safe: 'Safe' }) as const

export const groupsOf = (
  people: readonly MusterPerson[],
  { search, gathers }: { readonly search: string; readonly gathers: boolean }
): readonly MusterGroup[] => {
  const tones = { missing: gathers ? 'danger' : 'warning', unknown: 'warning', safe: 'good' } as const
  return (['missing', 'unknown', 'safe'] as const).map((status) => {
    const all = people.filter((person) => person.status === status)
    const found = all.filter((person) => isFound(person, search))
    return { status, title: statusTitles(gathers)[status], tone: tones[status], people: found, total: all.length }
  })
}
