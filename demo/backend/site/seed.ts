import { ROLES } from '../auth/permissions.js'
import { integerBetween, pick, type Random, seededRandom } from '../random.js'
import { insertRecords } from '../records.js'
import { resources } from '../resources.js'
import { storeDefaultSettings } from '../settings.js'
import type { Fields, World } from '../world.js'
import { centerOf, cornersOf, toCentimetres } from './geometry.js'
import { BUILDINGS, FLOORS, REGIONS, type Region } from './layout.js'
import {
  ADDRESSES,
  ASSET_KINDS,
  COMPANIES,
  CONTACTS,
  DEPARTMENTS,
  FIRST_NAMES,
  JOB_TITLES,
  LAST_NAMES,
  ZONE_KINDS
} from './names.js'

const DAY_MS = 24 * 60 * 60_000
const PEOPLE = 160

/** Rows by table. Rows without an id are numbered from 1. */
type Rows = Readonly<Record<string, readonly Fields[]>>

/** A time relative to the start, in days before it plus minutes. */
type Ago = (days: number, minutesLater?: number) => string

/** Inserts the demo data into an empty database. Deterministic for a seed, except for times. */
export const seedSite = async (world: World, seed: number): Promise<void> => {
  // Roles are defined in code, so they are updated at every start.
  await world.database.rows(
    `INSERT INTO roles SELECT * FROM jsonb_to_recordset($1::jsonb) AS r(id text, name text, description text, permissions jsonb)
     ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description, permissions = excluded.permissions`,
    [JSON.stringify(ROLES)]
  )
  await storeDefaultSettings(world)
  const [full] = await world.database.rows('SELECT 1 FROM buildings LIMIT 1')
  if (full !== undefined) return
  const random = seededRandom(seed)
  const ago: Ago = (days, minutesLater = 0) =>
    new Date(world.now().getTime() - days * DAY_MS + minutesLater * 60_000).toISOString()
  const rows: Rows = { ...buildingRows(random, ago), ...carriers(random, ago) }
  for (const resource of resources) {
    const common = Object.hasOwn(resource.columns, 'isActive') ? { isActive: true } : {}
    const numbered = rows[resource.table]?.map((row, index) => ({ id: index + 1, ...common, ...row }))
    if (numbered !== undefined) await insertRecords(world, resource, numbered)
  }
}

/** Creates rows numbered from 1. */
const many = <T>(count: number, row: (number: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => row(index + 1))

const padded = (prefix: string, digits: number, number: number): string =>
  `${prefix}${String(number).padStart(digits, '0')}`

const macAddress = (prefix: string, number: number): string =>
  [prefix, ...(number.toString(16).toUpperCase().padStart(6, '0').match(/../g) ?? [])].join(':')

/** Buildings and their fixed equipment. */
const buildingRows = (random: Random, ago: Ago): Rows => ({
  buildings: BUILDINGS.map((building, displayOrder) => ({ ...building, displayOrder, ...ADDRESSES[displayOrder] })),
  floors: FLOORS.map(({ floorId: id, regions: _regions, ...floor }) => {
    return { id, ...floor, ...PLAN, displayOrder: Number(floor.buildingId) * 10 + floor.level }
  }),
  zone_types: KINDS.map((kind, displayOrder) => {
    return { ...kind, displayOrder, name: `${kind.code[0]?.toUpperCase()}${kind.code.slice(1)}` }
  }),
  zones: REGIONS.map(({ zoneId: id, rect, kind: type, ...region }) => {
    const number = KINDS.findIndex(({ code }) => code === type)
    const { code: _code, ...traits } = KINDS[number] ?? {}
    return {
      id,
      type,
      ...region,
      ...traits,
      zoneTypeId: number + 1,
      isMusterPoint: type === 'muster',
      isExit: type === 'stairs',
      polygon: cornersOf(rect),
      center: centerOf(rect)
    }
  }),
  gateways: many(2 * BUILDINGS.length, (number) => {
    const [buildingId, part] = [Math.ceil(number / 2), 2 - (number % 2)]
    const state = { status: number === 6 ? 'pending' : 'synced', lastSyncAt: ago(0, -part * 7) }
    return { id: `gw-${number}`, buildingId, name: `Gateway ${buildingId}-${part}`, ...GATEWAY, ...state }
  }),
  receivers: REGIONS.flatMap(receiverPositions).map((receiver, index) => {
    const isOffline = random() < 0.04
    return {
      ...receiver,
      ...RECEIVER,
      macAddress: macAddress('AC:23:40', index + 1),
      gatewayId: `gw-${Number(receiver.buildingId) * 2 - (index % 2)}`,
      status: isOffline ? 'offline' : 'online',
      // Between a quarter of an hour and five hours ago.
      lastSeenAt: ago(0, isOffline ? -15 - ((index * 37) % 285) : 0)
    }
  }),
  departments: DEPARTMENTS.map((department, index) => {
    const [name, code = '', color] = department.split(':')
    return { name, code, color, managerId: index + 1, buildingId: (index % BUILDINGS.length) + 1 }
  }),
  beacons: many(4 * BUILDINGS.length, (minor) => {
    const [buildingId, part] = [Math.ceil(minor / 4), ((minor - 1) % 4) + 1]
    const sent = { minor, macAddress: macAddress('AC:23:41', minor), batteryLevel: integerBetween(random, 30, 100) }
    return { ...BEACON, ...sent, buildingId, name: `Reference beacon ${buildingId}-${part}` }
  }),
  emergency_contacts: CONTACTS.map((contact, index) => ({ priority: index + 1, ...contact }))
})

const PLAN = { pixelsPerMetre: 20, rotation: 0, origin: { x: 0, y: 0 } }
const GATEWAY = { configVersion: '17', firmwareVersion: '3.2.1' }
const RECEIVER = { model: 'RX-200', firmwareVersion: '2.4.0', txPower: -59, pathLossExponent: 2.4 }
const BEACON = { major: 2, type: 'reference', model: 'BX-5', status: 'active' }

/** The attributes of a zone type, which its zones share. */
const KINDS = ZONE_KINDS.map((zoneKind) => {
  const [code = '', color] = zoneKind.split(':')
  return { code, color, isRestricted: code === 'restricted', isEmergency: code === 'muster' || code === 'stairs' }
})

/** One receiver per 17 metres of a room or corridor. */
const receiverPositions = ({ buildingId, floorId, zoneId, name, rect }: Region) => {
  const count = Math.ceil(rect.width / 17)
  return many(count, (part) => {
    const x = toCentimetres(rect.x + (rect.width * (part - 0.5)) / count)
    const position = { x, y: toCentimetres(centerOf(rect).y), z: 2.6 }
    return { buildingId, floorId, zoneId, name: count === 1 ? name : `${name} ${part}`, position }
  })
}

/** Personnel and assets with a home floor, and transmitters: available, or assigned to personnel, guests and assets. */
const carriers = (random: Random, ago: Ago): Rows => {
  const fullName = () => ({ firstName: pick(random, FIRST_NAMES), lastName: pick(random, LAST_NAMES) })
  const home = () => {
    const { buildingId, floorId } = pick(random, FLOORS)
    return { buildingId, floorId, departmentId: integerBetween(random, 1, DEPARTMENTS.length) }
  }
  const guests = (kind: string, count: number) =>
    many(count, (number) => ({ entity_type: kind, ...fullName(), company: COMPANIES[number % COMPANIES.length] }))
  const carrying = [
    ...many(30, () => ({ status: 'available' })),
    ...many(PEOPLE, (entityId) => ({ entity_type: 'employee', entityId })),
    ...guests('visitor', 30),
    ...guests('contractor', 20),
    ...many(60, (entityId) => ({ entity_type: 'asset', entityId, model: 'TX-30' }))
  ]
  return {
    personnel: many(PEOPLE, (number) => {
      const { firstName, lastName } = fullName()
      return {
        firstName,
        lastName,
        name: `${firstName} ${lastName}`,
        ...home(),
        employeeId: `E${999 + number}`,
        phone: `+49 30 555 ${999 + number}`,
        email: `${firstName}.${lastName}.${number}@example.com`.toLowerCase(),
        jobTitle: pick(random, JOB_TITLES),
        isFirstAider: random() < 0.1,
        isFireWarden: random() < 0.08
      }
    }),
    assets: many(60, (number) => {
      const [name, category] = pick(random, ASSET_KINDS).split(':')
      return {
        name: `${name} ${number}`,
        assetTag: padded('A-', 4, number),
        type: 'equipment',
        category,
        ...home(),
        status: random() < 0.9 ? 'in use' : 'in repair'
      }
    }),
    transmitters: carrying.map((carrier, index) => ({
      ...BADGE,
      id: padded('AC233F', 6, index + 1),
      name: padded('Badge ', 4, index + 1),
      macAddress: macAddress('AC:23:3F', index + 1),
      minor: index + 1,
      batteryLevel: chargeOf(index, random()),
      ...('entity_type' in carrier && { status: 'assigned', assignedAt: ago(integerBetween(random, 1, 400)) }),
      ...carrier
    }))
  }
}

/** One battery in 37 is low; the others have more than a quarter of their charge. */
const chargeOf = (index: number, share: number): number =>
  index % 37 === 36 ? 4 + (index % 17) : Math.round(100 - 74 * share ** 1.5)

const BADGE = { uuid: 'e2c56db5-dffb-48d2-b060-d0f5a71096e0', major: 1, txPower: -59, model: 'TX-10' }
