import type { AmbientEntry, PositionEntry } from '../../../schemas/realtime.js'
import type { Publisher } from '../../../src/shared/publisher.js'
import { HISTORY_MS, type PositionHistory } from '../positions/history.js'
import { integerBetween, pick, type Random, seededRandom } from '../random.js'
import { DEVICE_KINDS } from '../site/names.js'
import type { Statements, World } from '../world.js'
import { type Carrier, Simulation } from './simulation.js'
import { type StoredZone, zoneAreas } from './zone-areas.js'

export interface SimulatorParts extends Pick<World, 'database' | 'now'> {
  readonly seed: number
  readonly publisher: Pick<Publisher, 'publish'>
  readonly history: PositionHistory
}

export const TICK_MS = 1000
/** Half the work at the start for paths that are nearly as precise. */
const BACKFILL_STEP_MS = 2000
const RELOAD_EVERY_TICKS = 3
const REPORT_EVERY_TICKS = 30

/** Advances the simulation once a second and publishes the positions to the relay and the database. */
export class Simulator {
  readonly #parts: SimulatorParts
  readonly #simulation: Simulation
  readonly #heardBy: ReturnType<typeof ambientDevices>
  /** The floor of every transmitter in the previous step. */
  readonly #floorOf = new Map<string, string>()
  /** The stored floors. On a deleted one there are no receivers, so nobody is located there. */
  #floors: ReadonlySet<string> = new Set()
  #ticks = 0

  constructor(parts: SimulatorParts) {
    this.#parts = parts
    this.#simulation = new Simulation(parts.seed)
    this.#heardBy = ambientDevices(seededRandom(parts.seed))
  }

  /** Advances by one second, however much real time has passed, so that markers do not jump on a busy machine. */
  async tick(): Promise<void> {
    const { database, publisher, history, now } = this.#parts
    const at = now()
    if (this.#ticks % RELOAD_EVERY_TICKS === 0) await this.#reload(at)
    this.#simulation.advance(TICK_MS)

    const positions = this.#located(this.#simulation.positions(at.getTime()))
    history.add(positions, at.getTime())
    const floors = new Map<string, PositionEntry[]>()
    for (const position of positions) {
      const [id, floorId] = [String(position.transmitterId), String(position.floorId)]
      const leftFloor = this.#floorOf.get(id) ?? floorId
      // Also on the floor that it has left, so that pages remove it there.
      for (const floor of new Set([floorId, leftFloor])) floors.set(floor, [...(floors.get(floor) ?? []), position])
      this.#floorOf.set(id, floorId)
    }
    for (const [floorId, data] of floors) void publisher.publish(`floor:${floorId}`, { type: 'position-batch', data })
    await storePositions(database, [...positions, ...this.#located(this.#simulation.silent())])
    if (this.#ticks % REPORT_EVERY_TICKS === 0) await database.rows(REPORT, [at])
    this.#ticks += 1
  }

  /** Simulates the last minutes, so that the history has no gap before the start. The next step continues from there. */
  async backfill(lengthMs = HISTORY_MS): Promise<void> {
    const endMs = this.#parts.now().getTime()
    await this.#reloadSite()
    for (let atMs = endMs - lengthMs; atMs < endMs; atMs += BACKFILL_STEP_MS) {
      this.#simulation.advance(BACKFILL_STEP_MS)
      this.#parts.history.add(this.#located(this.#simulation.positions(atMs)), atMs)
    }
  }

  #located(positions: readonly PositionEntry[]): PositionEntry[] {
    return positions.filter(({ floorId }) => this.#floors.has(String(floorId)))
  }

  /** Reloads carriers, floors, zones, emergencies and receivers, which pages can change. */
  async #reload(at: Date): Promise<void> {
    const { publisher } = this.#parts
    await this.#reloadSite()
    const online = new Set(await this.#ids("SELECT id FROM receivers WHERE status = 'online'"))
    // Devices stay with their receivers, also while some receivers are offline.
    const heard = this.#heardBy(await this.#ids('SELECT id FROM receivers ORDER BY id'), at.getTime())
    const data = heard.filter(({ receiverId }) => online.has(String(receiverId)))
    if (data.length > 0) void publisher.publish('global:all', { type: 'ambient-batch', data })
  }

  async #reloadSite(): Promise<void> {
    const { database } = this.#parts
    this.#simulation.populate(await database.rows<Carrier>(CARRIERS))
    this.#floors = new Set(await this.#ids('SELECT id FROM floors'))
    this.#simulation.evacuate(new Set(await this.#ids(ALARMED_BUILDINGS)))
    this.#simulation.locateBy(zoneAreas(await database.rows<StoredZone>(ZONES)))
  }

  async #ids(sql: string): Promise<string[]> {
    return (await this.#parts.database.rows<{ id: string }>(sql)).map(({ id }) => id)
  }
}

const DEVICES = 40
const HEARD_AT_ONCE = 6

/**
 * Ambient devices: a few are detected and classified now and then. A device stays with its receiver, so that most floors
 * always show one.
 */
const ambientDevices = (random: Random) => {
  const devices = Array.from({ length: DEVICES }, (_, index) => {
    const [deviceType = '', manufacturer = null] = pick(random, DEVICE_KINDS).split(':')
    return { index, deviceId: address(random), deviceType, manufacturer }
  })
  return (receiverIds: readonly string[], timestamp: number): AmbientEntry[] =>
    Array.from({ length: receiverIds.length === 0 ? 0 : HEARD_AT_ONCE }, () => {
      const { index, ...device } = pick(random, devices)
      const receiverId = receiverIds[Math.floor((index * receiverIds.length) / DEVICES)] ?? ''
      return { ...device, receiverId, rssi: integerBetween(random, -88, -55), timestamp }
    })
}

const address = (random: Random): string =>
  Array.from({ length: 6 }, () => integerBetween(random, 0, 255).toString(16).toUpperCase().padStart(2, '0')).join(':')

const CARRIERS = `SELECT transmitter_id, entity_type <> 'asset' AS is_person, home_floor_id AS floor_id
  FROM carriers WHERE is_active ORDER BY transmitter_id`

const ZONES = `SELECT id, floor_id, polygon FROM zones
  WHERE floor_id IS NOT NULL AND jsonb_typeof(polygon) = 'array' AND is_active IS NOT FALSE ORDER BY id`

/** Receivers that are offline have failed, and report no longer. */
const REPORT =
  "UPDATE receivers SET last_seen_at = $1 WHERE is_active IS NOT FALSE AND status IS DISTINCT FROM 'offline'"

/** The buildings that people leave. An emergency without a building applies to the whole site. */
const ALARMED_BUILDINGS = `SELECT DISTINCT b.id FROM buildings b JOIN emergencies e
    ON e.status = 'active' AND e.extra->>'gathers' = 'true' AND (e.building_id IS NULL OR e.building_id = b.id)`

/** Stores the latest positions in one statement, each with its own time. Deletes those of all other transmitters. */
const storePositions = async (database: Statements, positions: readonly PositionEntry[]): Promise<void> => {
  await database.rows(
    `WITH heard AS (SELECT "transmitterId" AS id, "floorId", "zoneId", (position->>'x')::float AS x,
         (position->>'y')::float AS y, accuracy, to_timestamp("timestamp" / 1000) AS at
       FROM jsonb_to_recordset($1::jsonb) AS r("transmitterId" text, "floorId" text, "zoneId" text, position jsonb,
         accuracy double precision, "timestamp" double precision)),
     gone AS (DELETE FROM positions WHERE transmitter_id NOT IN (SELECT id FROM heard))
     INSERT INTO positions (transmitter_id, floor_id, zone_id, x, y, accuracy, at)
     SELECT heard.* FROM heard JOIN transmitters t ON t.id = heard.id
     ON CONFLICT (transmitter_id) DO UPDATE SET floor_id = excluded.floor_id, zone_id = excluded.zone_id,
       x = excluded.x, y = excluded.y, accuracy = excluded.accuracy, at = excluded.at`,
    [JSON.stringify(positions)]
  )
}
