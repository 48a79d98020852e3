import { pick, type Random } from '../random.js'
import type { Statements } from '../world.js'

const CHANGES = 0.15
const OFFLINE = { least: 3, most: 7 } as const

/** Stores that the receivers which are online have reported. Now and then, one of them fails or another one recovers. */
export const reportReceivers = async (database: Statements, random: Random, at: Date): Promise<void> => {
  const receivers = await database.rows<{ id: string; status: string | null }>(
    'SELECT id, status FROM receivers WHERE is_active IS NOT FALSE ORDER BY id'
  )
  const offline = receivers.filter(({ status }) => status === 'offline')
  const online = receivers.filter(({ status }) => status === 'online')
  if (random() < CHANGES) {
    const recovers = offline.length > OFFLINE.least && (offline.length >= OFFLINE.most || random() < 0.5)
    const from = recovers ? offline : online
    if (from.length > 0)
      await database.rows('UPDATE receivers SET status = $2 WHERE id = $1', [
        pick(random, from).id,
        recovers ? 'online' : 'offline'
      ])
  }
  await database.rows("UPDATE receivers SET last_seen_at = $1 WHERE status = 'online'", [at])
}
