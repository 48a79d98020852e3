import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { PGlite } from '@electric-sql/pglite'
import type { Database, Fields, Statements, Value } from '../world.js'

const CONNECTIONS = 10
const CONNECT_TIMEOUT_MS = 5_000
const TIDY_EVERY_MS = 5 * 60_000

/** PostgreSQL over the network, with the tables that the script creates. */
export const openPostgres = async (url: string, tables: string): Promise<Database> => {
  const { Pool } = await import('pg')
  const pool = new Pool({ connectionString: url, max: CONNECTIONS, connectionTimeoutMillis: CONNECT_TIMEOUT_MS })
  // Idle connections that break are replaced; in use, the statement itself fails.
  pool.on('error', () => undefined)
  await pool.query(tables)
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
 * PostgreSQL inside this process, in memory. Creating an empty database and its tables takes several times as long as loading
 * them, so the first is cached in a file, if one is configured.
 */
export const openEmbedded = async (cacheFile: string | null, tables: string): Promise<Database> => {
  // Loaded here, because a backend with PostgreSQL does not need it.
  const { PGlite } = await import('@electric-sql/pglite')
  const version = createHash('sha256').update(tables).digest('hex')
  const cached = cacheFile === null ? null : await readFile(cacheFile).catch(() => null)
  // An incomplete file, or one of other versions, is ignored.
  const known = cached && (await PGlite.create({ loadDataDir: new Blob([cached]) }).catch(() => null))
  const isCurrent = known && (await known.query<{ version: string | null }>(VERSION)).rows[0]?.version === version
  const database = known && isCurrent ? known : await PGlite.create()
  if (!isCurrent) {
    await known?.close()
    await database.exec(`${tables};\nCOMMENT ON SCHEMA public IS '${version}'`)
    if (cacheFile !== null) await writeCache(database, cacheFile)
  }
  // There is no autovacuum here; without this, deleted rows and the write-ahead log would fill the memory.
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

/** SQL: the version of the tables, see `openEmbedded`. */
const VERSION = "SELECT obj_description('public'::regnamespace, 'pg_namespace') AS version"

/** Written to a temporary file and renamed, so that it is never read incomplete. If writing fails, the next start is slow. */
const writeCache = async (database: PGlite, file: string): Promise<void> => {
  const dump = await database.dumpDataDir('none')
  const temporary = `${file}.${process.pid}`
  await mkdir(dirname(file), { recursive: true })
    .then(async () => writeFile(temporary, Buffer.from(await dump.arrayBuffer())))
    .then(() => rename(temporary, file))
    .catch(() => undefined)
}

interface Connection {
  query(sql: string, values: Value[]): Promise<{ readonly rows: Fields[] }>
}

/** Converts column names such as `floor_id` to field names such as `floorId`. */
const statementsOn = (connection: Connection): Statements => ({
  rows: async <T>(sql: string, values: readonly Value[] = []) => {
    const { rows } = await connection.query(sql, [...values])
    const names = Object.keys(rows[0] ?? {}).map((name) => [name, fieldName(name)] as const)
    // The caller names the type of the rows that its SQL selects.
    return rows.map((row) => Object.fromEntries(names.map(([name, field]) => [field, row[name]]))) as T[]
  }
})

/** The only API field with an underscore. */
const fieldName = (name: string): string =>
  name === 'entity_type' ? name : name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
