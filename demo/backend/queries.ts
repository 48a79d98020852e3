import { notFound } from './errors.js'
import { textOf } from './lists.js'
import { getRecord } from './records.js'
import type { Resource } from './resources.js'
import { type Call, idOf, type Run } from './route.js'
import type { Fields, Value } from './world.js'

// Answers that are what a statement finds. Its placeholders are, in order, what the request says under the given names, in
// its path or in its query: null where it says nothing.

const sentAs = ({ query, params, now }: Call, name: string): Value =>
  name === 'now' ? now() : (params[name] ?? textOf(query, name))

export const rows =
  (sql: string, ...names: readonly string[]) =>
  (call: Call): Promise<Fields[]> =>
    call.database.rows(
      sql,
      names.map((name) => sentAs(call, name))
    )

/** The only row; null, or `NOT_FOUND` where there is a noun, when there is none. */
export const oneRow = (noun: string | null, sql: string, ...names: readonly string[]) => {
  const found = rows(sql, ...names)
  return async (call: Call): Promise<Fields | null> => {
    const [row] = await found(call)
    if (row === undefined && noun !== null) throw notFound(noun)
    return row ?? null
  }
}

/** Several answers in one, each under its name. */
export const together =
  (parts: Readonly<Record<string, Run>>) =>
  async (call: Call): Promise<Fields> => {
    const answers: Record<string, unknown> = {}
    for (const [name, run] of Object.entries(parts)) answers[name] = await run(call)
    return answers
  }

/** An answer about one of these; `NOT_FOUND` where it does not exist. */
export const about =
  (resource: Resource, run: Run): Run =>
  async (call) => {
    await getRecord(call, resource, idOf(call))
    return run(call)
  }
