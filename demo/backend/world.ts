/** Parameters of a statement; objects are passed as JSON text. */
export type Value = string | number | boolean | Date | Uint8Array | readonly string[] | null

/** Parameters by field name. */
export type Values = Readonly<Record<string, Value>>

/** A row or a body: values by field name. */
export type Fields = Readonly<Record<string, unknown>>

/**
 * The database interface. PostgreSQL over the network and the embedded one accept the same SQL, with numbered
 * placeholders only.
 */
export interface Statements {
  rows<T extends object = Fields>(sql: string, values?: readonly Value[]): Promise<T[]>
}

export interface Database extends Statements {
  /** Runs in a transaction. */
  transaction<T>(work: (statements: Statements) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** The dependencies of the backend. Tests pass their own. */
export interface World {
  /** The database, or one of its transactions. */
  readonly database: Statements
  readonly now: () => Date
  readonly newId: () => string
  /** The cost of bcrypt. */
  readonly bcryptRounds: number
}
