import type { Fields } from '../world.js'

/** A changed field in the audit log. Without values, they are secret or too large to be read. */
export interface FieldChange {
  /** The field of a record, or group and field of a setting, such as `battery.low`. */
  readonly field: string
  readonly before?: unknown
  readonly after?: unknown
}

/** A person whom an audit entry is about. */
export interface Concerned {
  /** Such as `personnel/12` or `visits/3`; without a record, that of the transmitter. */
  readonly id: string
  readonly name: string
}

/** A transmitter and what or whom it is carried by. */
export interface CarrierRow {
  readonly transmitterId: string
  readonly entityType: string
  readonly entityId: unknown
  readonly name: unknown
}

/** An audit entry with the names that the list adds. */
export interface AuditEntry {
  readonly action: string
  readonly result: string
  readonly method: string | null
  readonly path: string | null
  readonly userName: string | null
  readonly account: string | null
  readonly details: Fields | null
}
