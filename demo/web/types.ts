import type { AssetCreate } from '../../schemas/assets.js'
import type { BuildingCreate } from '../../schemas/buildings.js'
import type { EmergencyUpdate } from '../../schemas/emergency.js'
import type { FloorCreate } from '../../schemas/floors.js'
import type { PersonnelUpdate } from '../../schemas/personnel.js'
import type { PositionEntry } from '../../schemas/realtime.js'
import type { ReceiverUpdate } from '../../schemas/receivers.js'
import type { TransmitterUpdate } from '../../schemas/transmitters.js'
import type { UserCreate } from '../../schemas/users.js'
import type { ZoneCreate } from '../../schemas/zones.js'
import type { AlertKind, Severity } from '../alert-kinds.js'
import type { DescribedAlert } from '../alert-text.js'
import type { Instructions } from '../emergency-types.js'
import type { CHANNEL_EVENTS, CHANNEL_TYPES } from '../notification-channels.js'
import type { VisitUpdate } from '../visit-schema.js'
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

export type ImportCounts = Counts<'new' | 'changed' | 'unchanged' | 'duplicate' | 'faulty'>

/** A row of a file, and what its import does. */
export interface ImportedRow {
  readonly group: 'new' | 'changed' | 'duplicate' | 'faulty'
  readonly line: number
  readonly name: string
  readonly changes: readonly { readonly column: string; readonly before: string; readonly after: string }[]
  readonly reasons: readonly { readonly column: string; readonly message: string }[]
}

export interface ImportPreview {
  /** Confirms exactly this preview. */
  readonly fingerprint: string
  readonly counts: ImportCounts
  /** All rows but those that stay as they are. */
  readonly rows: readonly ImportedRow[]
}

export type Person = Stored<PersonnelUpdate> & Texts<'photoUrl' | 'transmitterId' | 'currentFloorId'>
export type User = Stored<UserCreate> & Texts<'lastLoginAt' | 'lockedUntil'>
export type Floor = Named & Counts<'personnel' | 'visitors' | 'contractors' | 'assets'> & Texts<'buildingName'>
export type Asset = Stored<AssetCreate> & Texts<'transmitterId' | 'currentFloorId'>
export type VisitStatus = 'expected' | 'on-site' | 'overdue' | 'left' | 'missed'
/** A visit of a visitor or a contractor. A visit without an end began with a transmitter, before it was recorded. */
export type Visit = Stored<Omit<Required<VisitUpdate>, 'expectedTo'>> &
  Texts<
    'expectedTo' | 'host' | 'transmitterId' | 'transmitterName' | 'currentFloorId' | 'checkedInAt' | 'checkedOutAt'
  > & {
    readonly status: VisitStatus
    readonly isOnSite: boolean
  }
export type Receiver = Stored<ReceiverUpdate> & Texts<'lastSeenAt'>
/** `mayEnter` has the names of those who may enter a restricted zone. */
export type Zone = Stored<ZoneCreate> & Counts<'occupancy'> & { readonly mayEnter: readonly string[] | null }
export type Building = Stored<BuildingCreate> & Counts<'floorCount'>
export type BatteryState = 'critical' | 'low' | 'warning' | 'good'
export type Transmitter = Stored<TransmitterUpdate> &
  Texts<'carriedBy' | 'currentFloorId'> & { readonly batteryState: BatteryState | null }
export type Emergency = Stored<EmergencyUpdate> &
  Texts<'startedAt' | 'buildingName'> & {
    /** Whether people go to the assembly area, so that a person elsewhere is missing. */
    readonly gathers?: boolean
    /** The counts at the end of the emergency. */
    readonly muster?: MusterCounts
  }

export type SiteFloor = Named & Size & Counts<'people'>

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
  readonly buildings: readonly (Named & { readonly floors: readonly SiteFloor[] })[]
}

/** A door in a wall. */
export interface Door extends Point, Pick<Size, 'width'> {
  /** The axis along which people pass it. */
  readonly way: 'x' | 'y'
  /** The ids of the zones on its two sides, the one with the smaller coordinate first. */
  readonly between: readonly [string, string]
}

/** A building with the number of people on each floor; null while it is not known. */
export interface CountedBuilding extends Named {
  readonly floors: readonly (Named & { readonly people: number | null })[]
}

export interface FloorContext {
  /** `imageAt` is the upload time of the plan image; null without one. */
  readonly floor: FloorRecord & Size & Texts<'imageUrl' | 'imageAt'>
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
  /** Emergencies first, then drills; the newest first. */
  readonly emergencies: readonly Emergency[]
}

export interface BuildingInstructions extends Named {
  readonly instructions: Instructions
  readonly version: number
}

export interface MusterPerson
  extends Texts<
    'floorId' | 'floorName' | 'buildingName' | 'zoneName' | 'department' | 'company' | 'host' | 'wardenFloorId'
  > {
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

/** The wardens of a floor. */
export interface FloorWardens {
  readonly floorId: string
  readonly floorName: string
  readonly buildingName: string
  readonly wardens: readonly string[]
}

/** The report of an emergency or a drill. */
export interface EmergencyReport {
  readonly emergency: Emergency
  readonly summary: MusterCounts
  /** Seconds from the start until people were safe; null if nobody was. */
  readonly times: Counts<'first' | 'median' | 'last'> | null
  readonly timeline: readonly (Texts<'text' | 'userName'> & { readonly at: string; readonly kind: string })[]
  readonly people: readonly ReportedPerson[]
}

export interface ReportedPerson
  extends Texts<'company' | 'host' | 'department' | 'place' | 'lastSeenAt' | 'markedBy' | 'safeAt'>,
    Pick<MusterPerson, 'transmitterId' | 'name' | 'kind' | 'status'> {
  readonly secondsToSafe: number | null
}

export interface Muster {
  readonly emergency: Emergency | null
  /** The time by the clock of the backend. */
  readonly at: string
  readonly wardens: readonly FloorWardens[]
  /** Absent if the emergency concerns the entire site. */
  readonly building?: Pick<Named, 'name'>
  readonly summary: MusterCounts
  readonly byKind: readonly (MusterCounts & { readonly kind: string })[]
  readonly people: readonly MusterPerson[]
}

export interface Dashboard {
  readonly summary: Readonly<Record<string, number>>
  readonly floors: readonly Floor[]
  readonly departments: readonly (Named & Counts<'onSite'>)[]
}

export type BatteryStats = Counts<BatteryState>

/** The number of people on each floor over time. */
export interface Occupancy {
  /** In milliseconds, ascending. */
  readonly at: readonly number[]
  readonly floors: readonly {
    readonly floorId: string
    readonly floorName: string
    readonly buildingId: string
    readonly buildingName: string
    /** One number for each time; null if nothing was counted. */
    readonly people: readonly (number | null)[]
  }[]
}

export interface AlertCount extends Counts<'open' | 'acknowledged'> {
  readonly kind: AlertKind
}

/** An item that needs attention. */
export interface Alert
  extends DescribedAlert,
    Texts<'acknowledgedBy' | 'acknowledgedAt' | 'escalatedAt' | 'assignedTo' | 'assignedName'>,
    Texts<'transmitterId' | 'receiverId' | 'zoneId' | 'floorId'> {
  readonly id: string
  readonly severity: Severity
  readonly state: 'open' | 'acknowledged'
  readonly since: string
  readonly name: string
}

/** A webhook or a list of recipients that is notified about alerts. */
export interface NotificationChannel extends Named, Texts<'url'> {
  readonly type: keyof typeof CHANNEL_TYPES
  readonly events: keyof typeof CHANNEL_EVENTS
  readonly minSeverity: Severity
  readonly recipients: readonly string[] | null
  readonly isActive: boolean | null
  readonly hasSecret: boolean
  /** The number of notifications that are not delivered yet. */
  readonly waiting: number
}

export interface Delivery extends Texts<'channelId' | 'message' | 'nextAttemptAt' | 'finishedAt'> {
  readonly id: string
  readonly channelName: string
  readonly subject: string
  readonly at: string
  readonly status: 'sent' | 'waiting' | 'sending' | 'failed'
  readonly attempts: number
}

export interface AuditSummary {
  readonly byAction: readonly { readonly action: string }[]
  readonly byAccount: readonly Texts<'account' | 'name'>[]
  readonly byPerson: readonly Named[]
}

export interface AuditRow extends Texts<'userName' | 'account' | 'ip' | 'method' | 'path'> {
  readonly id: string
  readonly at: string
  readonly action: string
  readonly result: 'done' | 'failed' | 'denied'
  readonly sentence: string
  readonly details: {
    readonly changes?: readonly { readonly field: string; readonly before?: unknown; readonly after?: unknown }[]
  } | null
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
    | 'badge'
    | 'entityId'
    | 'role'
    | 'department'
    | 'company'
    | 'host'
    | 'floorId'
    | 'floorName'
    | 'buildingName'
    | 'zoneId'
    | 'zoneName'
    | 'photoUrl'
    | 'at'
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
