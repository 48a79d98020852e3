/** What a statement may be given; objects go in as JSON text. */
export type Value = string | number | boolean | Date | Uint8Array | readonly string[] | null

/** By the names of the fields that they are for. */
export type Values = Readonly<Record<string, Value>>

/** A row, or a body: fields by name. */
export type Fields = Readonly<Record<string, unknown>>

/**
 * The little that the backend asks of a database. PostgreSQL over the network and the embedded one take the same SQL, with
 * numbered placeholders only.
 */
export interface Statements {
  rows<T extends object = Fields>(sql: string, values?: readonly Value[]): Promise<T[]>
}

export interface Database extends Statements {
  /** All of it or nothing. */
  transaction<T>(work: (statements: Statements) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** What all work is done with. A test hands in its own. */
export interface World {
  /** Or one transaction of it. */
  readonly database: Statements
  readonly now: () => Date
  readonly newId: () => string
  /** The cost of bcrypt. */
  readonly bcryptRounds: number
}
