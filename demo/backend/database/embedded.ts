import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import type { Database } from '../world.js'
import { statementsOn } from './statements.js'

/**
 * PostgreSQL inside this process, in memory. To make an empty one takes it ten times as long as to read one back, so the
 * first is kept in a file, where one is named.
 */
export const openEmbedded = async (keptEmpty: string | null): Promise<Database> => {
  const database = await open(keptEmpty)
  return {
    ...statementsOn(database),
    transaction: (work) => database.transaction((transaction) => work(statementsOn(transaction))),
    close: () => database.close()
  }
}

const open = async (keptEmpty: string | null): Promise<PGlite> => {
  const kept = keptEmpty === null ? null : await readFile(keptEmpty).catch(() => null)
  // One that was made by another version, or only half written, is as good as none.
  if (kept !== null) {
    const database = await PGlite.create({ loadDataDir: new Blob([kept]) }).catch(() => null)
    if (database !== null) return database
  }
  const database = await PGlite.create()
  if (keptEmpty !== null) await keep(database, keptEmpty)
  return database
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
