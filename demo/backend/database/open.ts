import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { Pool } from 'pg'
import type { Database, Fields, Statements, Value } from '../world.js'

const CONNECTIONS = 10
const CONNECT_TIMEOUT_MS = 5_000
const TIDY_EVERY_MS = 5 * 60_000

/** PostgreSQL over the network. */
export const openPostgres = (url: string): Database => {
  const pool = new Pool({ connectionString: url, max: CONNECTIONS, connectionTimeoutMillis: CONNECT_TIMEOUT_MS })
  // A connection that breaks while nobody uses it is replaced; who uses one is told by the statement itself.
  pool.on('error', () => undefined)
  return {
    ...statementsOn(pool),
    transaction: async (work) => {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        const result = await work(statementsOn(client))
        await client.query('COMMIT')
        return result
      } catch (error) {
        await client.query('ROLLBACK')
        throw error
      } finally {
        client.release()
      }
    },
    close: () => pool.end()
  }
}

/**
 * PostgreSQL inside this process, in memory. To make an empty one takes it ten times as long as to read one back, so the
 * first is kept in a file, where one is named.
 */
export const openEmbedded = async (keptEmpty: string | null): Promise<Database> => {
  const kept = keptEmpty === null ? null : await readFile(keptEmpty).catch(() => null)
  // One that was made by another version, or only half written, is as good as none.
  const known = kept && (await PGlite.create({ loadDataDir: new Blob([kept]) }).catch(() => null))
  const database = known ?? (await PGlite.create())
  if (!known && keptEmpty !== null) await keep(database, keptEmpty)
  // No process does this here, and without it memory fills with deleted rows and the log of all that was written.
  const tidy = async () => {
    for (const sql of ['VACUUM', 'CHECKPOINT']) await database.query(sql)
  }
  const tidying = setInterval(() => void tidy().catch(() => undefined), TIDY_EVERY_MS)
  return {
    ...statementsOn(database),
    transaction: (work) => database.transaction((transaction) => work(statementsOn(transaction))),
    close: () => {
      clearInterval(tidying)
      return database.close()
    }
  }
}

/** Renamed into its place: nobody ever reads half of it. Where nothing can be written, the next start is slow again. */
const keep = async (database: PGlite, file: string): Promise<void> => {
  const dump = await database.dumpDataDir('none')
  const half = `${file}.${process.pid}`
  await mkdir(dirname(file), { recursive: true })
    .then(async () => writeFile(half, Buffer.from(await dump.arrayBuffer())))
    .then(() => rename(half, file))
    .catch(() => undefined)
}

interface Connection {
  query(sql: string, values: Value[]): Promise<{ readonly rows: unknown[] }>
}

/** What SQL calls `floor_id` is `floorId` everywhere else; names are changed here, on the way out. */
const statementsOn = (connection: Connection): Statements => ({
  rows: async <T>(sql: string, values: readonly Value[] = []) => {
    const { rows } = await connection.query(sql, [...values])
    const names = Object.keys(rows[0] ?? {}).map((name) => [name, fieldName(name)] as const)
    return (rows as Fields[]).map((row) => Object.fromEntries(names.map(([name, field]) => [field, row[name]]))) as T[]
  }
})

/** The one field that has an underscore in the API too. */
const fieldName = (name: string): string =>
  name === 'entity_type' ? name : name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
