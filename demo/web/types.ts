import type { AssetCreate } from '../../schemas/assets.js'
import type { BuildingCreate } from '../../schemas/buildings.js'
import type { EmergencyContactCreate, EmergencyUpdate } from '../../schemas/emergency.js'
import type { FloorCreate } from '../../schemas/floors.js'
import type { DepartmentCreate } from '../../schemas/management.js'
import type { PersonnelUpdate } from '../../schemas/personnel.js'
import type { PositionEntry } from '../../schemas/realtime.js'
import type { ReceiverUpdate } from '../../schemas/receivers.js'
import type { TransmitterUpdate } from '../../schemas/transmitters.js'
import type { UserCreate } from '../../schemas/users.js'
import type { ZoneCreate } from '../../schemas/zones.js'
import type { AlertKind, Severity } from '../alert-kinds.js'
import type { Instructions } from '../emergency-types.js'
import type { Point, Size } from './floor-plan/plan.js'

// The responses of the demo backend, as far as the page uses them. Stored records have the fields of the schemas.

type Stored<Body> = Readonly<Body> & { readonly id: string }
type Counts<Names extends string> = Readonly<Record<Names, number>>
type Texts<Names extends string> = Readonly<Record<Names, string | null>>

export interface DataResponse<Data> {
  readonly data: Data
}

export interface ListResponse<Row> extends DataResponse<readonly Row[]> {
  /** Present if the list is paged. */
  readonly meta?: Counts<'total' | 'limit' | 'offset'>
}

export interface Named {
  readonly id: string
  readonly name: string
}

export type Person = Stored<PersonnelUpdate> & Texts<'photoUrl' | 'transmitterId' | 'currentFloorId'>
export type User = Stored<UserCreate> & Texts<'lastLoginAt' | 'lockedUntil'>
export type Asset = Stored<AssetCreate> & Texts<'transmitterId' | 'currentFloorId'>
export type Receiver = Stored<ReceiverUpdate> & Texts<'lastSeenAt'>
export type Zone = Stored<ZoneCreate> & Counts<'occupancy'>
export type Department = Stored<DepartmentCreate>
export type Contact = Stored<EmergencyContactCreate>
export type Building = Stored<BuildingCreate> & Counts<'floorCount'>
export type Transmitter = Stored<TransmitterUpdate> & Texts<'carriedBy' | 'currentFloorId' | 'batteryState'>
export type Emergency = Stored<EmergencyUpdate> &
  Texts<'startedAt' | 'buildingName'> & {
    /** Whether people go to the assembly area, so that a person elsewhere is missing. */
    readonly gathers?: boolean
    /** The counts at the end of the emergency. */
    readonly muster?: MusterCounts
    /** How it ended, such as `mistake`. */
    readonly outcome?: string | null
    /** In the response to an alarm: an identical one was active already. */
    readonly joined?: boolean
  }

/** An uploaded plan. It fills the rectangle, in metres, rotated clockwise about the origin of the floor. */
export interface PlanImage extends Point, Size {
  readonly url: string
  /** In degrees. */
  readonly rotation: number
}

/** The plan of a floor and its calibration. */
interface FloorPlanImage {
  readonly planImage: PlanImage | null
  readonly origin: Point | null
  /** Null until the plan is calibrated. */
  readonly calibratedAt?: string | null
}

export type FloorRecord = Stored<FloorCreate> & FloorPlanImage

export interface SiteContext {
  /** With the number of people on each floor. */
  readonly buildings: readonly (Named & { readonly floors: readonly (Named & Counts<'people'>)[] })[]
}

/** A door in a wall. */
export interface Door extends Point, Pick<Size, 'width'> {
  /** The axis along which people pass it. */
  readonly way: 'x' | 'y'
  /** The ids of the zones on its two sides, the one with the smaller coordinate first. */
  readonly between: readonly [string, string]
}

export interface FloorContext {
  readonly floor: FloorRecord & Size
  /** Each as x1, y1, x2, y2. */
  readonly walls: readonly (readonly [number, number, number, number])[]
  readonly doors: readonly Door[]
  readonly zones: readonly Stored<ZoneCreate>[]
  readonly receivers: readonly Stored<ReceiverUpdate>[]
  readonly positions: readonly Omit<PositionEntry, 'positionMethod'>[]
  /** Everyone and everything with a transmitter, on all floors. */
  readonly carriers: readonly Carrier[]
}

export interface Carrier {
  readonly transmitterId: string
  readonly name: string
  readonly entityType: string
  readonly isFirstAider: boolean
  /** Of a visitor or contractor. */
  readonly company: string | null
}

export type MusterCounts = Counts<'total' | 'safe' | 'missing' | 'unknown'>

/** The state of the site for every page. */
export interface SiteStatus {
  /** By the clock of the backend. */
  readonly now: string
  readonly lastPositionAt: string | null
  /** The most dangerous first. */
  readonly emergencies: readonly Emergency[]
}

/** The instructions of a building for each type of alarm. */
export interface BuildingInstructions extends Named {
  readonly instructions: Instructions
}

export interface MusterPerson
  extends Texts<'floorId' | 'floorName' | 'buildingName' | 'zoneName' | 'department' | 'company'> {
  readonly transmitterId: string
  readonly name: string
  readonly kind: string
  readonly isFirstAider: boolean
  readonly isFireWarden: boolean
  readonly lastSeenAt: string | null
  readonly status: 'safe' | 'missing' | 'unknown'
  /** The user who marked the person safe, and when; null if the position shows it. */
  readonly markedBy: string | null
  readonly markedAt: string | null
}

/** The report of an emergency or a drill. */
export interface EmergencyReport {
  readonly emergency: Emergency
  readonly summary: MusterCounts
  /** Seconds from the start until people were safe; null if nobody was. */
  readonly times: Counts<'first' | 'median' | 'last'> | null
  readonly timeline: readonly (Texts<'text' | 'userName'> & { readonly at: string; readonly kind: string })[]
  readonly people: readonly (Texts<'place' | 'markedBy'> &
    Pick<MusterPerson, 'name' | 'kind' | 'status'> & { readonly secondsToSafe: number | null })[]
}

export interface Muster {
  readonly emergency: Emergency | null
  /** The time by the clock of the backend. */
  readonly at: string
  /** Absent if the emergency concerns the entire site. */
  readonly building?: Pick<Named, 'name'>
  readonly summary: MusterCounts
  readonly people: readonly MusterPerson[]
}

export interface Dashboard {
  readonly summary: Counts<
    | 'personnel'
    | 'personnelOnSite'
    | 'visitorsOnSite'
    | 'contractorsOnSite'
    | 'assets'
    | 'assetsOnSite'
    | 'receivers'
    | 'receiversOnline'
  >
}

export type BatteryStats = Counts<'critical' | 'low'>

/** The number of people on each floor over time. */
export interface Occupancy {
  /** In milliseconds, ascending. */
  readonly at: readonly number[]
  readonly floors: readonly {
    readonly buildingName: string
    readonly floorName: string
    /** One number for each time; null if nothing was counted. */
    readonly people: readonly (number | null)[]
  }[]
}

/** The number of alerts of one kind. */
export type AlertCount = Counts<'open'>

/** An item that needs attention. */
export interface Alert
  extends Texts<'acknowledgedBy' | 'acknowledgedAt' | 'zoneName' | 'floorName' | 'buildingName'>,
    Texts<'transmitterId' | 'receiverId' | 'zoneId' | 'floorId'> {
  readonly id: string
  readonly kind: AlertKind
  readonly severity: Severity
  readonly state: 'open' | 'acknowledged'
  readonly since: string
  readonly name: string
}

/** In degrees Celsius and metres per second. */
export interface Weather extends Counts<'temperature' | 'humidity' | 'windSpeed'> {
  readonly at: string
  readonly condition: string
}

export interface AuditRow extends Texts<'userName' | 'account' | 'ip' | 'method' | 'path'> {
  readonly id: string
  readonly at: string
  readonly action: string
  readonly result: 'done' | 'failed' | 'denied'
}

/** Milliseconds after the start of the range, x, y, and the zone. */
export type TrackPoint = readonly [number, number, number, string | null]

/** The path of one transmitter while it was on the floor. */
export interface Track {
  readonly transmitterId: string
  readonly points: readonly TrackPoint[]
}

export interface FloorTracks {
  readonly from: string
  readonly to: string
  readonly tracks: readonly Track[]
}

export interface CarrierDetails
  extends Texts<
    'role' | 'department' | 'company' | 'floorId' | 'floorName' | 'buildingName' | 'zoneName' | 'photoUrl' | 'at'
  > {
  readonly transmitterId: string
  readonly entityType: string
  readonly name: string
  readonly isFirstAider: boolean | null
  readonly isFireWarden: boolean | null
  readonly batteryLevel: number | null
  /** In metres. */
  readonly accuracy: number | null
}
