import type { EmergencyContactUpdate, EmergencyUpdate } from '../../schemas/emergency.js'
import type { FloorUpdate } from '../../schemas/floors.js'
import type { PersonnelUpdate } from '../../schemas/personnel.js'
import type { UserUpdate } from '../../schemas/users.js'
import type { Point, Wall } from './floor-plan/plan.js'

// What the demo's backend answers with, as far as the page looks at it: what is stored is what the schemas name.

type Stored<Body> = Readonly<Body> & { readonly id: string }
type Counts<Names extends string> = Readonly<Record<Names, number>>

export interface Answer<Data> {
  readonly data: Data
}

export interface ListAnswer<Row> extends Answer<readonly Row[]> {
  readonly meta: Counts<'total' | 'limit' | 'offset'>
}

export interface Person extends Stored<PersonnelUpdate> {
  readonly photoUrl: string | null
  readonly transmitterId: string | null
  readonly currentFloorId: string | null
}

export interface User extends Stored<UserUpdate> {
  readonly email: string
  readonly lastLoginAt: string | null
  readonly lockedUntil: string | null
}

export type Contact = Stored<EmergencyContactUpdate>

export interface Floor extends Stored<FloorUpdate>, Counts<'personnel' | 'guests'> {
  readonly buildingName: string
}

export interface Named {
  readonly id: string
  readonly name: string
}

export interface BuildingContext extends Named {
  readonly floors: readonly Named[]
}

export interface SiteContext {
  readonly buildings: readonly BuildingContext[]
}

export interface FloorContext {
  readonly floor: Named & {
    readonly width: number
    readonly height: number
    readonly imageUrl: string
    /** When a plan was uploaded; null where none was. */
    readonly imageAt: string | null
  }
  readonly walls: readonly Wall[]
  readonly zones: readonly (Named & {
    readonly type: string | null
    readonly polygon: readonly Point[] | null
    readonly isRestricted: boolean | null
    readonly isMusterPoint: boolean | null
  })[]
  readonly receivers: readonly (Named & { readonly position: Point | null; readonly status: string | null })[]
  readonly positions: readonly {
    readonly transmitterId: string
    readonly position: Point
    readonly zoneId: string | null
    readonly timestamp: string
  }[]
}

export interface Transmitter {
  readonly id: string
  readonly name: string | null
  readonly entity_type: string | null
  readonly carriedBy: string | null
}

export interface Emergency extends Stored<EmergencyUpdate> {
  readonly startedAt: string | null
}

export interface Muster {
  readonly summary: Counts<'total' | 'safe' | 'missing' | 'unknown'>
  readonly people: readonly {
    readonly personnelId: string
    readonly name: string
    readonly zoneName: string | null
    readonly isFirstAider: boolean | null
    readonly isFireWarden: boolean | null
    readonly status: 'safe' | 'missing' | 'unknown'
  }[]
}

export interface EmergencyEvent {
  readonly id: string
  readonly kind: string
  readonly title: string | null
  readonly userEmail: string | null
  readonly at: string
}

export interface Dashboard {
  readonly summary: Counts<
    'personnel' | 'personnelOnSite' | 'guestsOnSite' | 'assets' | 'receivers' | 'receiversOnline' | 'batteriesLow'
  > &
    Counts<'emergenciesActive'>
  readonly floors: readonly Floor[]
  readonly departments: readonly (Named & Counts<'onSite'>)[]
  readonly personnel: { readonly presence: readonly { readonly at: string; readonly people: number }[] }
}

export interface BatteryStats {
  readonly distribution: readonly Counts<'from' | 'devices'>[]
}

export interface AuditRow {
  readonly id: string
  readonly at: string
  readonly action: string
  readonly result: 'done' | 'failed' | 'denied'
  readonly userEmail: string | null
  readonly method: string | null
  readonly path: string | null
}
