import { matches } from './search.js'
import type { FloorWardens, MusterPerson } from './types.js'

// The groups of the muster. No group changes its total while somebody searches.

export const GROUPINGS = [
  { id: 'status', name: 'Status' },
  { id: 'zone', name: 'Zone' },
  { id: 'department', name: 'Department' },
  { id: 'warden', name: 'Warden' }
] as const
export type Grouping = (typeof GROUPINGS)[number]['id']

export interface MusterGroup {
  readonly key: string
  readonly title: string
  readonly tone: 'danger' | 'warning' | 'good' | ''
  /** Those whom the search finds. */
  readonly people: readonly MusterPerson[]
  readonly total: number
  readonly safe: number
}

/** Name, category, company, host, department, role and place. */
export const isFound = (person: MusterPerson, search: string): boolean => {
  const { name, kind, company, host, department, zoneName, floorName, buildingName, isFirstAider, isFireWarden } =
    person
  const roles = [isFirstAider && 'first aider', isFireWarden && 'warden']
  const texts = [name, kind, company, host, department, zoneName, floorName, buildingName, ...roles]
  return matches(texts.filter(Boolean).join(' '), search)
}

/** The titles of the statuses. If people stay where they are, nobody is missing. */
export const statusTitles = (gathers: boolean) =>
  ({ missing: gathers ? 'Missing' : 'Not confirmed', unknown: 'No position', safe: 'Safe' }) as const

const STATUSES = [
  { status: 'missing', tone: 'danger' },
  { status: 'unknown', tone: 'warning' },
  { status: 'safe', tone: 'good' }
] as const

interface Options {
  readonly grouping: Grouping
  readonly search: string
  readonly gathers: boolean
  readonly wardens: readonly FloorWardens[]
}

export const groupsOf = (people: readonly MusterPerson[], options: Options): readonly MusterGroup[] => {
  const { grouping, search, gathers } = options
  const groupOf = (key: string, title: string, tone: MusterGroup['tone'], all: readonly MusterPerson[]) => ({
    key,
    title,
    tone,
    people: all.filter((person) => isFound(person, search)),
    total: all.length,
    safe: all.filter(({ status }) => status === 'safe').length
  })
  if (grouping === 'status') {
    const titles = statusTitles(gathers)
    return STATUSES.map(({ status, tone }) =>
      groupOf(status, titles[status], tone === 'danger' && !gathers ? 'warning' : tone, of(people, status))
    )
  }
  const titleOf = TITLES[grouping]
  const titles = [...new Set(people.map((person) => titleOf(person, options.wardens)))]
  return titles
    .map((title) => {
      const all = people.filter((person) => titleOf(person, options.wardens) === title)
      return groupOf(
        title,
        title,
        '',
        STATUSES.flatMap(({ status }) => of(all, status))
      )
    })
    .sort((one, other) => other.total - other.safe - (one.total - one.safe) || one.title.localeCompare(other.title))
}

const of = (people: readonly MusterPerson[], wanted: MusterPerson['status']): readonly MusterPerson[] =>
  people.filter(({ status }) => status === wanted)

type TitleOf = (person: MusterPerson, wardens: readonly FloorWardens[]) => string

const TITLES: Readonly<Record<Exclude<Grouping, 'status'>, TitleOf>> = {
  zone: ({ zoneName, floorName, buildingName }) =>
    [zoneName, floorName, buildingName].filter(Boolean).join(', ') || 'No position',
  department: ({ department, company, kind }) => department ?? company ?? `Without department (${kind})`,
  // The wardens of the floor on which the person was at the alarm.
  warden: ({ wardenFloorId }, wardens) => {
    const floor = wardens.find(({ floorId }) => floorId === wardenFloorId)
    if (!floor) return 'No warden: floor not known'
    const names = floor.wardens.length > 0 ? floor.wardens.join(', ') : 'No warden'
    return `${names}: ${floor.floorName}, ${floor.buildingName}`
  }
}
