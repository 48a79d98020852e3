import type { Point, Wall } from './floor-plan/plan.js'

// What the demo's backend answers with, as far as the page looks at it.

export interface Answer<Data> {
  readonly data: Data
}

export interface ListAnswer<Row> extends Answer<readonly Row[]> {
  readonly meta: { readonly total: number; readonly limit: number; readonly offset: number }
}

export interface Person {
  readonly id: string
  readonly name: string | null
  readonly firstName: string | null
  readonly lastName: string | null
  readonly email: string | null
  readonly phone: string | null
  readonly jobTitle: string | null
  readonly departmentId: string | null
  readonly department: string | null
  readonly isActive: boolean | null
  readonly isFirstAider: boolean | null
  readonly isFireWarden: boolean | null
  readonly notes: string | null
  readonly photoUrl: string | null
  readonly transmitterId: string | null
  readonly currentFloorId: string | null
}

export interface Named {
  readonly id: string
  readonly name: string
}

export interface BuildingContext extends Named {
  readonly code: string
  readonly floors: readonly Named[]
}

export interface SiteContext {
  readonly buildings: readonly BuildingContext[]
}

export interface FloorContext {
  readonly floor: { readonly id: string; readonly name: string; readonly width: number; readonly height: number }
  readonly building: Named | null
  readonly walls: readonly Wall[]
  readonly zones: readonly {
    readonly id: string
    readonly name: string
    readonly type: string | null
    readonly polygon: readonly Point[] | null
    readonly isRestricted: boolean | null
    readonly isMusterPoint: boolean | null
  }[]
  readonly receivers: readonly {
    readonly id: string
    readonly name: string
    readonly position: Point | null
    readonly status: string | null
  }[]
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

export interface Emergency {
  readonly id: string
  readonly type: string | null
  readonly title: string | null
  readonly message: string | null
  readonly buildingId: string | null
  readonly isDrill: boolean | null
  readonly startedAt: string | null
}

export interface MusterPerson {
  readonly personnelId: string
  readonly name: string
  readonly department: string | null
  readonly zoneName: string | null
  readonly lastSeenAt: string | null
  readonly isFirstAider: boolean | null
  readonly isFireWarden: boolean | null
  readonly status: 'safe' | 'missing' | 'unknown'
}

export interface Muster {
  readonly emergency: Emergency | null
  readonly summary: {
    readonly total: number
    readonly safe: number
    readonly missing: number
    readonly unknown: number
  }
  readonly people: readonly MusterPerson[]
}

export interface EmergencyEvent {
  readonly id: string
  readonly kind: string
  readonly title: string | null
  readonly userEmail: string | null
  readonly at: string
}

export interface Dashboard {
  readonly summary: {
    readonly personnel: number
    readonly personnelOnSite: number
    readonly guestsOnSite: number
    readonly assets: number
    readonly receivers: number
    readonly receiversOnline: number
    readonly batteriesLow: number
    readonly emergenciesActive: number
  }
  readonly floors: readonly {
    readonly id: string
    readonly name: string
    readonly buildingName: string
    readonly personnel: number
    readonly guests: number
  }[]
  readonly departments: readonly { readonly id: string; readonly name: string; readonly onSite: number }[]
  readonly personnel: { readonly presence: readonly { readonly at: string; readonly people: number }[] }
}

export interface BatteryStats {
  readonly average: number | null
  readonly distribution: readonly { readonly from: number; readonly devices: number }[]
}

export interface User {
  readonly id: string
  readonly email: string
  readonly displayName: string | null
  readonly role: string | null
  readonly isActive: boolean | null
  readonly lastLoginAt: string | null
  readonly lockedUntil: string | null
}

export interface AuditRow {
  readonly id: string
  readonly at: string
  readonly action: string
  readonly result: string
  readonly userEmail: string | null
  readonly ip: string | null
  readonly method: string | null
  readonly path: string | null
}
