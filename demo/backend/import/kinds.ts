import type { TSchema } from '@sinclair/typebox'
import { AssetUpdateSchema } from '../../../schemas/assets.js'
import { PersonnelUpdateSchema } from '../../../schemas/personnel.js'
import { VisitUpdateSchema } from '../../visit-schema.js'
import { assets, personnel, type Resource, visits } from '../resources.js'
import { endError, followKind } from '../visits/visit.js'
import type { Fields, World } from '../world.js'
import { FULL_NAME_TOO_LONG, fullName, MAX_FULL_NAME } from './full-name.js'
import type { Site } from './site.js'

/** One row of the file: a record to create, or the stored record to change. */
export interface ImportRow {
  readonly line: number
  readonly id: string | null
  /** The values of the columns that the file has; null for empty cells. */
  readonly values: Fields
  readonly stored: Fields | null
}

export interface ColumnError {
  readonly column: string
  readonly message: string
}

/** A kind of record that a CSV file can import. The table below has one row for each. */
export interface ImportKind {
  readonly resource: Resource
  /** An import may omit columns; their fields stay as they are. The export has all of them. */
  readonly columns: readonly string[]
  /** A new record needs a value in one column of each group. */
  readonly required: readonly (readonly string[])[]
  readonly schema: TSchema
  /** Two records with the same values in all these fields, of which the first has one, are duplicates. */
  readonly unique: readonly (readonly string[])[]
  /** Fields of new records. */
  readonly initial: Fields
  /** Columns with the name of another record, and the field that stores its id. */
  readonly named: Readonly<Record<string, { readonly field: string; readonly from: 'departments' | 'personnel' }>>
  /** Columns that are computed from several others. */
  readonly computed?: (row: ImportRow) => Fields
  /** Errors that the schema does not express. */
  readonly errors?: (row: ImportRow, site: Site) => readonly ColumnError[]
  /** Runs after a record was changed. */
  readonly changed?: (world: World, id: string, changes: Fields) => Promise<void>
}

/** The value of the file, or else the stored one. */
export const valueIn = ({ values, stored }: ImportRow, column: string): unknown =>
  values[column] === undefined ? (stored?.[column] ?? null) : values[column]

const words = (text: string): string[] => text.split(' ')

export const IMPORT_KINDS = {
  personnel: {
    resource: personnel,
    columns: words(
      'id employeeId name firstName lastName email phone jobTitle department buildingId floorId transmitterId badgeNumber ' +
        'startDate endDate isActive isFirstAider isFireWarden notes'
    ),
    required: [['name', 'firstName', 'lastName']],
    schema: PersonnelUpdateSchema,
    unique: [['email'], ['employeeId']],
    initial: { isActive: true },
    named: { department: { field: 'departmentId', from: 'departments' } },
    computed: (row) => ({ name: fullName(row.values, row.stored) }),
    errors: ({ values, stored }) =>
      fullName(values, stored).length > MAX_FULL_NAME ? [{ column: 'lastName', message: FULL_NAME_TOO_LONG }] : []
  },
  assets: {
    resource: assets,
    columns: words(
      'id name assetTag serialNumber type category description manufacturer model status departmentId buildingId floorId ' +
        'transmitterId purchaseDate value isActive'
    ),
    required: [['name']],
    schema: AssetUpdateSchema,
    unique: [['assetTag'], ['serialNumber']],
    initial: { isActive: true, status: 'in use' },
    named: {}
  },
  visits: {
    resource: visits,
    columns: words('id name kind company email phone host expectedFrom expectedTo notes'),
    required: [['name'], ['expectedFrom'], ['expectedTo']],
    schema: VisitUpdateSchema,
    // A person may visit again at another time.
    unique: [
      ['email', 'expectedFrom'],
      ['name', 'company', 'expectedFrom']
    ],
    initial: { kind: 'visitor' },
    named: { host: { field: 'hostId', from: 'personnel' } },
    errors: (row) => {
      const message = endError(valueIn(row, 'expectedFrom'), valueIn(row, 'expectedTo'))
      return message === null ? [] : [{ column: 'expectedTo', message }]
    },
    changed: async (world, id, { kind }) => {
      if (typeof kind === 'string') await followKind(world, id, kind)
    }
  }
} satisfies Readonly<Record<string, ImportKind>>
