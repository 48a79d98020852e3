import type { Logger } from 'pino'
import type { PositionEntry } from '../../../schemas/realtime.js'
import type { Publisher } from '../../../src/shared/publisher.js'
import type { Database, Statements } from '../database/database.js'
import type { AmbientDevices } from './ambient.js'
import type { Carrier, Simulation } from './simulation.js'

export interface SimulatorParts {
  readonly simulation: Simulation
  readonly ambient: AmbientDevices
  readonly database: Database
  readonly publisher: Pick<Publisher, 'publish'>
  readonly now: () => Date
  readonly log: Logger
}

export const TICK_MS = 1000
const LOOK_EVERY = 3
const KEEP_EVERY = 30
const AMBIENT_EVERY = 3
const KEPT_MS = 2 * 60 * 60_000

/** Lets people walk, once a second, and tells the relay and the database where they are. */
export class Simulator {
  readonly #parts: SimulatorParts
  #ticks = 0
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()
  #receiverIds: readonly string[] = []

  constructor(parts: SimulatorParts) {
    this.#parts = parts
  }

  start(): void {
    let busy = false
    this.#timer = setInterval(() => {
      // A slow database makes people pause, not pile up.
      if (busy) return
      busy = true
      this.#running = this.tick()
        .catch((error: unknown) => this.#parts.log.error({ err: error }, 'the simulator stumbled'))
        .finally(() => {
          busy = false
        })
    }, TICK_MS)
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running
  }

  /** One second of the site's life, however long it took in ours: nobody jumps when the machine was busy. */
  async tick(): Promise<void> {
    const { simulation, ambient, database, publisher, now } = this.#parts
    if (this.#ticks % LOOK_EVERY === 0) await this.#look(database)
    simulation.advance(TICK_MS)

    const at = now()
    const positions = simulation.positions(at.getTime())
    for (const [floorId, data] of byFloor(positions))
      publisher.publish(`floor:${floorId}`, { type: 'position-batch', data })
    await keepPositions(database, positions, at, this.#ticks % KEEP_EVERY === 0)

    const heard = this.#ticks % AMBIENT_EVERY === 0 ? ambient.heard(this.#receiverIds, at.getTime()) : []
    if (heard.length > 0) publisher.publish('global:all', { type: 'ambient-batch', data: heard })
    this.#ticks += 1
  }

  /** Who carries a transmitter now, and where there is an emergency: pages change both. */
  async #look(statements: Statements): Promise<void> {
    const { simulation } = this.#parts
    simulation.populate(await statements.rows<Carrier>(CARRIERS))
    const alarms = await statements.rows<{ id: string }>(ALARMED_BUILDINGS)
    simulation.evacuate(new Set(alarms.map(({ id }) => id)))
    const receivers = await statements.rows<{ id: string }>(
      "SELECT id FROM receivers WHERE status = 'online' ORDER BY id"
    )
    this.#receiverIds = receivers.map(({ id }) => id)
  }
}

const CARRIERS = `SELECT t.id AS "transmitterId", CASE t.entity_type WHEN 'asset' THEN 'thing' ELSE 'person' END AS kind,
    coalesce(e.floor_id, a.floor_id) AS "floorId"
  FROM transmitters t
  LEFT JOIN personnel e ON t.entity_type = 'employee' AND e.id = t.entity_id
  LEFT JOIN assets a ON t.entity_type = 'asset' AND a.id = t.entity_id
  WHERE t.entity_type IS NOT NULL AND t.is_active IS NOT FALSE AND e.is_active IS NOT FALSE ORDER BY t.id`

/** An emergency without a building is one everywhere. */
const ALARMED_BUILDINGS = `SELECT DISTINCT b.id FROM buildings b JOIN emergencies e
    ON e.status = 'active' AND (e.building_id IS NULL OR e.building_id = b.id)`

const byFloor = (positions: readonly PositionEntry[]): Map<string, PositionEntry[]> => {
  const floors = new Map<string, PositionEntry[]>()
  for (const position of positions) {
    const floorId = String(position.floorId)
    const known = floors.get(floorId)
    if (known === undefined) floors.set(floorId, [position])
    else known.push(position)
  }
  return floors
}

/** The newest place of each, in one statement; now and then the history too, and what is old of it goes. */
const keepPositions = async (
  statements: Statements,
  positions: readonly PositionEntry[],
  at: Date,
  inHistory: boolean
): Promise<void> => {
  const rows = positions.map(({ transmitterId, floorId, zoneId, position, accuracy }) => ({
    transmitter_id: transmitterId,
    floor_id: floorId,
    zone_id: zoneId,
    x: position.x,
    y: position.y,
    accuracy
  }))
  const json = JSON.stringify(rows)
  await statements.rows(
    `WITH heard AS (SELECT * FROM jsonb_to_recordset($1::jsonb) AS r(transmitter_id text, floor_id text, zone_id text,
       x double precision, y double precision, accuracy double precision)),
     gone AS (DELETE FROM positions WHERE transmitter_id NOT IN (SELECT transmitter_id FROM heard))
     INSERT INTO positions (transmitter_id, floor_id, zone_id, x, y, accuracy, at)
     SELECT heard.*, $2::timestamptz FROM heard JOIN transmitters t ON t.id = heard.transmitter_id
     ON CONFLICT (transmitter_id) DO UPDATE SET floor_id = excluded.floor_id, zone_id = excluded.zone_id,
       x = excluded.x, y = excluded.y, accuracy = excluded.accuracy, at = excluded.at`,
    [json, at]
  )
  if (!inHistory) return
  await statements.rows(
    `INSERT INTO position_history (transmitter_id, floor_id, zone_id, x, y, at)
     SELECT transmitter_id, floor_id, zone_id, x, y, at FROM positions`
  )
  // The seeded day stays, for the charts.
  await statements.rows(`DELETE FROM position_history WHERE at < $1 AND at > (SELECT min(created_at) FROM buildings)`, [
    new Date(at.getTime() - KEPT_MS)
  ])
}
