import { ROLES } from '../auth/permissions.js'
import type { Database, Statements } from '../database/database.js'
import { insertMany } from '../database/schema.js'
import { integerBetween, pick, type Random, seededRandom } from '../random.js'
import * as resources from '../resources.js'
import { centerOf, cornersOf, toCentimetres } from './geometry.js'
import type { BuildingLayout, FloorLayout, Region, ZoneKind } from './layout.js'
import { ASSET_KINDS, DEPARTMENTS, FIRST_NAMES, JOB_TITLES, LAST_NAMES } from './names.js'
import { ZONE_COLORS } from './plan-svg.js'

const SPARES = 30
const EMPLOYEES = 160
const VISITORS = 30
const CONTRACTORS = 20
const ASSETS = 60

const DAY_MS = 24 * 60 * 60_000

type SeedRow = Readonly<Record<string, unknown>> & { readonly id: string }

/** Everything that is there before anybody has done anything; the same for the same seed, but for what time it is. */
export const seedSite = async (
  database: Database,
  site: readonly BuildingLayout[],
  { seed, now }: { readonly seed: number; readonly now: Date }
): Promise<void> => {
  await database.transaction(async (statements) => {
    const [full] = await statements.rows('SELECT 1 FROM buildings LIMIT 1')
    await seedRoles(statements)
    if (full !== undefined) return
    const random = seededRandom(seed)
    for (const [resource, rows] of rowsOf(site, random, now)) await insertMany(statements, resource, rows, now)
    await seedHistory(statements, now)
  })
}

/** Roles are the program's, not the operator's: they follow it. */
const seedRoles = async (statements: Statements): Promise<void> => {
  for (const { id, name, description, permissions } of ROLES) {
    await statements.rows(
      `INSERT INTO roles (id, name, description, permissions) VALUES ($1, $2, $3, $4)
       ON CONFLICT (id) DO UPDATE SET permissions = excluded.permissions`,
      [id, name, description, JSON.stringify(permissions)]
    )
  }
}

const rowsOf = (
  site: readonly BuildingLayout[],
  random: Random,
  now: Date
): (readonly [resources.Resource, readonly SeedRow[]])[] => {
  const floors = site.flatMap((building) => building.floors)
  const people = peopleOf(floors, random, now)
  const assets = assetsOf(floors, random, now)
  return [
    [resources.buildings, site.map(buildingRow)],
    [resources.floors, floors.map(floorRow)],
    [resources.zoneTypes, KINDS.map(zoneTypeRow)],
    [resources.zones, floors.flatMap((floor) => floor.regions.map((region) => zoneRow(floor, region)))],
    [resources.gateways, site.flatMap((building, index) => gatewayRows(building, index, now))],
    [resources.receivers, receiverRows(floors, random)],
    [resources.departments, DEPARTMENTS.map(departmentRow)],
    [resources.personnel, people],
    [resources.assets, assets],
    [resources.transmitters, transmitterRows(people, assets, random, now)],
    [resources.beacons, site.flatMap((building) => beaconRows(building, random))],
    [resources.emergencies, [pastDrill(now)]],
    [
      resources.emergencyContacts,
      CONTACTS.map((contact, index) => ({ id: String(index + 1), priority: index + 1, ...contact }))
    ]
  ]
}

const PLACES = [
  { address: '1 Northgate Road', latitude: 52.5201, longitude: 13.405 },
  { address: '3 Northgate Road', latitude: 52.5207, longitude: 13.4063 },
  { address: '8 Foundry Lane', latitude: 52.5196, longitude: 13.4071 }
]
const TOWN = { city: 'Berlin', country: 'Germany', timezone: 'Europe/Berlin', isActive: true }

const buildingRow = ({ buildingId: id, name, code }: BuildingLayout, displayOrder: number): SeedRow => ({
  id,
  name,
  code,
  displayOrder,
  ...PLACES[displayOrder],
  ...TOWN
})

const floorRow = ({ floorId: id, regions: _regions, ...floor }: FloorLayout): SeedRow => ({
  id,
  ...floor,
  pixelsPerMetre: 20,
  rotation: 0,
  origin: { x: 0, y: 0 },
  isActive: true,
  displayOrder: Number(floor.buildingId) * 10 + floor.level
})

const KINDS = Object.keys(ZONE_COLORS) as ZoneKind[]

/** What is said of a kind of zone, and of every zone of that kind. */
const traitsOf = (kind: ZoneKind) => ({
  color: ZONE_COLORS[kind],
  isRestricted: kind === 'restricted',
  isEmergency: kind === 'muster' || kind === 'stairs',
  isActive: true
})

const zoneTypeRow = (kind: ZoneKind, index: number): SeedRow => ({
  id: String(index + 1),
  code: kind,
  displayOrder: index,
  ...traitsOf(kind),
  name: `${kind[0]?.toUpperCase()}${kind.slice(1)}`
})

const zoneRow = ({ buildingId, floorId }: FloorLayout, { zoneId: id, name, kind, rect }: Region): SeedRow => ({
  id,
  name,
  type: kind,
  buildingId,
  floorId,
  ...traitsOf(kind),
  isMusterPoint: kind === 'muster',
  isExit: kind === 'stairs',
  polygon: cornersOf(rect),
  center: centerOf(rect),
  zoneTypeId: String(KINDS.indexOf(kind) + 1),
  capacity: Math.max(4, Math.round((rect.width * rect.height) / 6))
})

const gatewayRows = ({ buildingId }: BuildingLayout, index: number, now: Date): SeedRow[] =>
  [1, 2].map((part) => ({
    id: `gw-${index * 2 + part}`,
    buildingId,
    name: `Gateway ${buildingId}-${part}`,
    status: index === 2 && part === 2 ? 'pending' : 'synced',
    configVersion: '17',
    firmwareVersion: '3.2.1',
    lastSyncAt: new Date(now.getTime() - part * 7 * 60_000).toISOString()
  }))

const RECEIVER = { model: 'RX-200', firmwareVersion: '2.4.0', txPower: -59, pathLossExponent: 2.4, isActive: true }

/** One in the middle of every room, more along corridors and in large rooms. */
const receiverRows = (floors: readonly FloorLayout[], random: Random): SeedRow[] => {
  let number = 0
  return floors.flatMap(({ buildingId, floorId, regions }) =>
    regions.flatMap(({ zoneId, name, kind, rect }) => {
      const count = kind === 'corridor' ? 4 : rect.width > 18 ? 2 : 1
      const y = toCentimetres(centerOf(rect).y)
      return Array.from({ length: count }, (_, index) => {
        number += 1
        return {
          id: String(number),
          buildingId,
          floorId,
          zoneId,
          ...RECEIVER,
          name: count === 1 ? name : `${name} ${index + 1}`,
          macAddress: macAddress('AC:23:40', number),
          serialNumber: numbered('RX-', 5, number),
          gatewayId: `gw-${(Number(buildingId) - 1) * 2 + (number % 2) + 1}`,
          position: { x: toCentimetres(rect.x + (rect.width * (index + 0.5)) / count), y, z: 2.6 },
          status: random() < 0.04 ? 'offline' : 'online'
        }
      })
    })
  )
}

const departmentRow = ([name, code, color]: (typeof DEPARTMENTS)[number], index: number): SeedRow => ({
  id: String(index + 1),
  managerId: String(index + 1),
  buildingId: String((index % 3) + 1),
  name,
  code,
  color,
  email: `${code.toLowerCase()}@example.com`,
  phone: `+49 30 555 0${index}00`,
  isActive: true
})

/** Somewhere on the site, in some department. */
const somewhere = (floors: readonly FloorLayout[], random: Random) => {
  const { buildingId, floorId, regions } = pick(random, floors)
  const departmentId = String(integerBetween(random, 1, DEPARTMENTS.length))
  return { buildingId, floorId, departmentId, zoneId: pick(random, regions).zoneId, isActive: true }
}

const peopleOf = (floors: readonly FloorLayout[], random: Random, now: Date): SeedRow[] =>
  Array.from({ length: EMPLOYEES }, (_, index) => {
    const [firstName, lastName] = [pick(random, FIRST_NAMES), pick(random, LAST_NAMES)]
    return {
      id: String(index + 1),
      firstName,
      lastName,
      name: `${firstName} ${lastName}`,
      employeeId: `E${1000 + index}`,
      badgeNumber: numbered('B-', 4, index + 1),
      phone: `+49 30 555 ${1000 + index}`,
      ...somewhere(floors, random),
      email: `${firstName}.${lastName}.${index + 1}@example.com`.toLowerCase(),
      jobTitle: pick(random, JOB_TITLES),
      startDate: daysAgo(now, integerBetween(random, 30, 3000)).slice(0, 10),
      isFirstAider: random() < 0.1,
      isFireWarden: random() < 0.08
    }
  })

const assetsOf = (floors: readonly FloorLayout[], random: Random, now: Date): SeedRow[] =>
  Array.from({ length: ASSETS }, (_, index) => {
    const [name, category] = pick(random, ASSET_KINDS)
    return {
      id: String(index + 1),
      name: `${name} ${index + 1}`,
      assetTag: numbered('A-', 4, index + 1),
      type: 'equipment',
      category,
      tags: [category],
      ...somewhere(floors, random),
      status: random() < 0.9 ? 'in use' : 'in repair',
      value: integerBetween(random, 2, 400) * 50,
      purchaseDate: daysAgo(now, integerBetween(random, 100, 2500)).slice(0, 10)
    }
  })

/** First those on the shelf, then those that people, guests and things carry. */
const transmitterRows = (
  people: readonly SeedRow[],
  assets: readonly SeedRow[],
  random: Random,
  now: Date
): SeedRow[] => {
  const carriedBy = (entity_type: string, rows: readonly SeedRow[]) =>
    rows.map(({ id: entityId, departmentId }) => ({ entity_type, entityId, departmentId }))
  const guests = (entity_type: string, length: number) =>
    Array.from({ length }, () => ({
      entity_type,
      firstName: pick(random, FIRST_NAMES),
      lastName: pick(random, LAST_NAMES)
    }))
  const carriers: readonly Readonly<Record<string, unknown>>[] = [
    ...Array.from({ length: SPARES }, () => ({})),
    ...carriedBy('employee', people),
    ...guests('visitor', VISITORS),
    ...guests('contractor', CONTRACTORS),
    ...carriedBy('asset', assets)
  ]
  return carriers.map((carrier, index) => {
    const given = carrier.entity_type !== undefined
    return {
      id: numbered('AC233F', 6, index + 1),
      name: numbered('Badge ', 4, index + 1),
      ...carrier,
      macAddress: macAddress('AC:23:3F', index + 1),
      uuid: 'e2c56db5-dffb-48d2-b060-d0f5a71096e0',
      major: 1,
      minor: index + 1,
      txPower: -59,
      model: carrier.entity_type === 'asset' ? 'TX-30' : 'TX-10',
      // Most are well, a few are not: squared, so that low ones are rare.
      batteryLevel: Math.round(100 - 96 * random() ** 2.2),
      status: given ? 'assigned' : 'available',
      isActive: true,
      assignedAt: given ? daysAgo(now, integerBetween(random, 1, 400)) : null
    }
  })
}

const beaconRows = ({ buildingId }: BuildingLayout, random: Random): SeedRow[] =>
  [1, 2, 3, 4].map((part) => {
    const minor = (Number(buildingId) - 1) * 4 + part
    return {
      id: String(minor),
      name: `Reference beacon ${buildingId}-${part}`,
      macAddress: macAddress('AC:23:41', minor),
      major: 2,
      minor,
      buildingId,
      type: 'reference',
      model: 'BX-5',
      status: 'active',
      isActive: true,
      batteryLevel: integerBetween(random, 30, 100),
      personnelId: part === 1 ? String(minor) : null
    }
  })

const pastDrill = (now: Date): SeedRow => ({
  id: '1',
  type: 'evacuation',
  severity: 'minor',
  title: 'Quarterly evacuation drill',
  buildingId: '1',
  message: 'This is a drill. Leave by the nearest exit.',
  isDrill: true,
  status: 'resolved',
  startedAt: daysAgo(now, DRILL_DAYS),
  resolvedAt: daysAgo(now, DRILL_DAYS, 15),
  resolution: DRILL_RESULT
})
const DRILL_DAYS = 20
const DRILL_RESULT = 'Everybody out in nine minutes.'

const CONTACTS = [
  { name: 'Fire brigade', role: 'Fire and rescue', phone: '112', isActive: true },
  { name: 'Site security', role: 'Gate and patrols', phone: '+49 30 555 0600', isActive: true, notifyBySms: true },
  { name: 'Works doctor', role: 'First aid', phone: '+49 30 555 0611', isActive: true },
  { name: 'Facilities on call', role: 'Power, water, doors', mobile: '+49 170 555 0500', isActive: true }
]

const daysAgo = (now: Date, days: number, minutesLater = 0): string =>
  new Date(now.getTime() - days * DAY_MS + minutesLater * 60_000).toISOString()

const numbered = (prefix: string, digits: number, number: number): string =>
  `${prefix}${String(number).padStart(digits, '0')}`

const macAddress = (prefix: string, number: number): string =>
  [prefix, ...(number.toString(16).toUpperCase().padStart(6, '0').match(/../g) ?? [])].join(':')

/** A day of whereabouts, a week of batteries, and receivers that were heard and never set up. */
const seedHistory = async (statements: Statements, now: Date): Promise<void> => {
  await statements.rows(
    `INSERT INTO position_history (transmitter_id, floor_id, zone_id, x, y, at)
     SELECT t.id, z.floor_id, z.id, (z.center->>'x')::float, (z.center->>'y')::float, $1::timestamptz - hour * interval '1 hour'
     FROM transmitters t CROSS JOIN generate_series(1, 23) AS hour
     JOIN zones z ON z.id = (1 + (t.minor * 7 + hour * 11) % (SELECT count(*) FROM zones))::text
     -- everybody is there now, and was a day ago; half a day ago it was one in six
     WHERE t.entity_type IS NOT NULL AND (t.entity_type = 'asset' OR t.minor % 12 < 7 + 5 * cos(hour * pi() / 12))`,
    [now]
  )
  await statements.rows(
    `INSERT INTO battery_readings (device_id, level, at)
     SELECT id, least(100, battery_level + day), $1::timestamptz - day * interval '1 day'
     FROM transmitters CROSS JOIN generate_series(0, 6) AS day`,
    [now]
  )
  await statements.rows(
    `INSERT INTO discovered_receivers (mac_address, model, rssi, building_id, first_heard_at)
     SELECT 'AC:23:42:00:00:0' || n, 'RX-200', -50 - 7 * n, (1 + n % 3)::text, $1::timestamptz - n * interval '3 hours'
     FROM generate_series(1, 4) AS n`,
    [now]
  )
  await statements.rows(
    `INSERT INTO emergency_events (id, emergency_id, kind, message, user_email, at)
     VALUES ('1', '1', 'triggered', 'Quarterly drill', 'admin@example.com', $1),
            ('2', '1', 'resolved', '${DRILL_RESULT}', 'admin@example.com', $2)`,
    [daysAgo(now, DRILL_DAYS), daysAgo(now, DRILL_DAYS, 15)]
  )
}
