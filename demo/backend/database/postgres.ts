import { Pool } from 'pg'
import type { Database } from '../world.js'
import { statementsOn } from './statements.js'

const CONNECTIONS = 10
const CONNECT_TIMEOUT_MS = 5_000

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
