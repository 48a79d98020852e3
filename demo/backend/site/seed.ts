import { ROLES } from '../auth/permissions.js'
import { integerBetween, pick, type Random, seededRandom } from '../random.js'
import { insertRecords, putRow } from '../records.js'
import * as resources from '../resources.js'
import type { Fields, World } from '../world.js'
import { centerOf, cornersOf, toCentimetres } from './geometry.js'
import { seedHistory } from './history.js'
import type { BuildingLayout, FloorLayout, Region, ZoneKind } from './layout.js'
import { ASSET_KINDS, DEPARTMENTS, FIRST_NAMES, JOB_TITLES, LAST_NAMES } from './names.js'
import { ZONE_COLORS } from './plan-svg.js'

const DAY_MS = 24 * 60 * 60_000

/** Everything that is there before anybody has done anything; the same for the same seed, but for what time it is. */
export const seedSite = async (world: World, site: readonly BuildingLayout[], seed: number): Promise<void> => {
  // Roles are the program's, not the operator's: they follow it.
  for (const { permissions, ...role } of ROLES)
    await putRow(world, 'roles', { ...role, permissions: JSON.stringify(permissions) }, 'id')
  const [full] = await world.database.rows('SELECT 1 FROM buildings LIMIT 1')
  if (full !== undefined) return
  for (const [resource, rows] of rowsOf(site, seededRandom(seed), world.now())) {
    const common = Object.hasOwn(resource.columns, 'isActive') ? { isActive: true } : {}
    const numbered = rows.map((row, index) => ({ id: String(index + 1), ...common, ...row }))
    await insertRecords(world, resource, numbered)
  }
  await seedHistory(world)
}

type Seed = readonly [resources.Resource, readonly Fields[]]

/** In the order in which they name each other. Those without an id get their number. */
const rowsOf = (site: readonly BuildingLayout[], random: Random, now: Date): readonly Seed[] => {
  const floors = site.flatMap((building) => building.floors)
  const regions = floors.flatMap((floor) => floor.regions)
  const people = many(160, (number) => personRow(number, floors, random, now))
  const assets = many(60, (number) => assetRow(number, floors, random, now))
  return [
    [resources.buildings, site.map(buildingRow)],
    [resources.floors, floors.map(floorRow)],
    [resources.zoneTypes, KINDS.map(zoneTypeRow)],
    [resources.zones, regions.map(zoneRow)],
    [resources.gateways, many(2 * site.length, (number) => gatewayRow(number, now))],
    [resources.receivers, regions.flatMap(receiversIn).map((row, index) => receiverRow(row, index + 1, random))],
    [resources.departments, DEPARTMENTS.map(departmentRow)],
    [resources.personnel, people],
    [resources.assets, assets],
    [resources.transmitters, transmitterRows(people, assets, random, now)],
    [resources.beacons, many(4 * site.length, (number) => beaconRow(number, random))],
    [resources.emergencies, [pastDrill(now)]],
    [resources.emergencyContacts, CONTACTS.map((contact, index) => ({ priority: index + 1, ...contact }))]
  ]
}

/** Rows that are numbered from 1. */
const many = <T>(count: number, row: (number: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => row(index + 1))

const PLACES = [
  { address: '1 Northgate Road', latitude: 52.5201, longitude: 13.405 },
  { address: '3 Northgate Road', latitude: 52.5207, longitude: 13.4063 },
  { address: '8 Foundry Lane', latitude: 52.5196, longitude: 13.4071 }
]
const TOWN = { city: 'Berlin', country: 'Germany', timezone: 'Europe/Berlin' }

const buildingRow = ({ buildingId: id, name, code }: BuildingLayout, displayOrder: number): Fields => {
  return { id, name, code, displayOrder, ...PLACES[displayOrder], ...TOWN }
}

const PLAN = { pixelsPerMetre: 20, rotation: 0, origin: { x: 0, y: 0 } }

const floorRow = ({ floorId: id, regions: _regions, ...floor }: FloorLayout): Fields => {
  return { id, ...floor, ...PLAN, displayOrder: Number(floor.buildingId) * 10 + floor.level }
}

const KINDS = Object.keys(ZONE_COLORS) as ZoneKind[]

/** What is said of a kind of zone, and of every zone of that kind. */
const traitsOf = (kind: ZoneKind) => ({
  color: ZONE_COLORS[kind],
  isRestricted: kind === 'restricted',
  isEmergency: kind === 'muster' || kind === 'stairs'
})

const zoneTypeRow = (code: ZoneKind, displayOrder: number): Fields => {
  const name = `${code[0]?.toUpperCase()}${code.slice(1)}`
  return { code, displayOrder, name, ...traitsOf(code) }
}

const zoneRow = ({ zoneId: id, rect, kind: type, ...region }: Region): Fields => ({
  id,
  type,
  ...region,
  ...traitsOf(type),
  isMusterPoint: type === 'muster',
  isExit: type === 'stairs',
  polygon: cornersOf(rect),
  center: centerOf(rect),
  zoneTypeId: String(KINDS.indexOf(type) + 1),
  capacity: Math.max(4, Math.round((rect.width * rect.height) / 6))
})

/** Two in each building. */
const gatewayRow = (number: number, now: Date): Fields => {
  const [buildingId, part] = [Math.ceil(number / 2), 2 - (number % 2)]
  return {
    id: `gw-${number}`,
    buildingId,
    name: `Gateway ${buildingId}-${part}`,
    status: number === 6 ? 'pending' : 'synced',
    configVersion: '17',
    firmwareVersion: '3.2.1',
    lastSyncAt: timeAgo(now, 0, -part * 7)
  }
}

/** One in the middle of every room, more along corridors and in large rooms. */
const receiversIn = ({ buildingId, floorId, zoneId, name, kind, rect }: Region) => {
  const count = kind === 'corridor' ? 4 : rect.width > 18 ? 2 : 1
  return many(count, (part) => {
    const x = toCentimetres(rect.x + (rect.width * (part - 0.5)) / count)
    const position = { x, y: toCentimetres(centerOf(rect).y), z: 2.6 }
    return { buildingId, floorId, zoneId, name: count === 1 ? name : `${name} ${part}`, position }
  })
}

const RECEIVER = { model: 'RX-200', firmwareVersion: '2.4.0', txPower: -59, pathLossExponent: 2.4 }

const receiverRow = (place: ReturnType<typeof receiversIn>[number], number: number, random: Random): Fields => ({
  ...place,
  ...RECEIVER,
  macAddress: macAddress('AC:23:40', number),
  serialNumber: numbered('RX-', 5, number),
  gatewayId: `gw-${(Number(place.buildingId) - 1) * 2 + (number % 2) + 1}`,
  status: random() < 0.04 ? 'offline' : 'online'
})

const departmentRow = (department: string, index: number): Fields => {
  const [name, code = '', color] = department.split(':')
  const [email, phone] = [`${code.toLowerCase()}@example.com`, `+49 30 555 0${index}00`]
  return { managerId: String(index + 1), buildingId: String((index % 3) + 1), name, code, color, email, phone }
}

/** Somewhere on the site, in some department. */
const somewhere = (floors: readonly FloorLayout[], random: Random) => {
  const { buildingId, floorId, regions } = pick(random, floors)
  const departmentId = String(integerBetween(random, 1, DEPARTMENTS.length))
  return { buildingId, floorId, departmentId, zoneId: pick(random, regions).zoneId }
}

const personRow = (number: number, floors: readonly FloorLayout[], random: Random, now: Date): Fields => {
  const [firstName, lastName] = [pick(random, FIRST_NAMES), pick(random, LAST_NAMES)]
  const { zoneId: _zoneId, ...place } = somewhere(floors, random)
  return {
    firstName,
    lastName,
    name: `${firstName} ${lastName}`,
    employeeId: `E${999 + number}`,
    badgeNumber: numbered('B-', 4, number),
    phone: `+49 30 555 ${999 + number}`,
    ...place,
    email: `${firstName}.${lastName}.${number}@example.com`.toLowerCase(),
    jobTitle: pick(random, JOB_TITLES),
    startDate: timeAgo(now, integerBetween(random, 30, 3000)).slice(0, 10),
    isFirstAider: random() < 0.1,
    isFireWarden: random() < 0.08
  }
}

const assetRow = (number: number, floors: readonly FloorLayout[], random: Random, now: Date): Fields => {
  const [name, category] = pick(random, ASSET_KINDS).split(':')
  return {
    name: `${name} ${number}`,
    assetTag: numbered('A-', 4, number),
    type: 'equipment',
    category,
    tags: [category],
    ...somewhere(floors, random),
    status: random() < 0.9 ? 'in use' : 'in repair',
    value: integerBetween(random, 2, 400) * 50,
    purchaseDate: timeAgo(now, integerBetween(random, 100, 2500)).slice(0, 10)
  }
}

const BADGE = { uuid: 'e2c56db5-dffb-48d2-b060-d0f5a71096e0', major: 1, txPower: -59 }

/** First those on the shelf, then those that people, guests and things carry. */
const transmitterRows = (people: readonly Fields[], assets: readonly Fields[], random: Random, now: Date): Fields[] => {
  const carriedBy = (entity_type: string, rows: readonly Fields[]) =>
    rows.map(({ departmentId }, index) => ({ entity_type, entityId: String(index + 1), departmentId }))
  const guest = (entity_type: string) => () => {
    const firstName = pick(random, FIRST_NAMES)
    return { entity_type, firstName, lastName: pick(random, LAST_NAMES) }
  }
  const carriers: readonly Fields[] = [
    ...many(30, () => ({})),
    ...carriedBy('employee', people),
    ...many(30, guest('visitor')),
    ...many(20, guest('contractor')),
    ...carriedBy('asset', assets)
  ]
  return carriers.map((carrier, index) => {
    const given = carrier.entity_type !== undefined
    return {
      id: numbered('AC233F', 6, index + 1),
      name: numbered('Badge ', 4, index + 1),
      ...BADGE,
      ...carrier,
      macAddress: macAddress('AC:23:3F', index + 1),
      minor: index + 1,
      model: carrier.entity_type === 'asset' ? 'TX-30' : 'TX-10',
      // Most are well, a few are not: squared, so that low ones are rare.
      batteryLevel: Math.round(100 - 96 * random() ** 2.2),
      status: given ? 'assigned' : 'available',
      assignedAt: given ? timeAgo(now, integerBetween(random, 1, 400)) : null
    }
  })
}

const BEACON = { major: 2, type: 'reference', model: 'BX-5', status: 'active' }

/** Four in each building. */
const beaconRow = (minor: number, random: Random): Fields => {
  const [buildingId, part] = [Math.ceil(minor / 4), ((minor - 1) % 4) + 1]
  return {
    name: `Reference beacon ${buildingId}-${part}`,
    macAddress: macAddress('AC:23:41', minor),
    ...BEACON,
    minor,
    buildingId,
    batteryLevel: integerBetween(random, 30, 100),
    personnelId: part === 1 ? String(minor) : null
  }
}

const DRILL = { type: 'evacuation', severity: 'minor', buildingId: '1', isDrill: true, status: 'resolved' }

const pastDrill = (now: Date): Fields => ({
  ...DRILL,
  title: 'Quarterly evacuation drill',
  message: 'This is a drill. Leave by the nearest exit.',
  startedAt: timeAgo(now, 20),
  resolvedAt: timeAgo(now, 20, 15),
  resolution: 'Everybody out in nine minutes.'
})

const CONTACTS = [
  { name: 'Fire brigade', role: 'Fire and rescue', phone: '112' },
  { name: 'Site security', role: 'Gate and patrols', phone: '+49 30 555 0600', notifyBySms: true },
  { name: 'Works doctor', role: 'First aid', phone: '+49 30 555 0611' },
  { name: 'Facilities on call', role: 'Power, water, doors', mobile: '+49 170 555 0500' }
]

const timeAgo = (now: Date, days: number, minutesLater = 0): string =>
  new Date(now.getTime() - days * DAY_MS + minutesLater * 60_000).toISOString()

const numbered = (prefix: string, digits: number, number: number): string =>
  `${prefix}${String(number).padStart(digits, '0')}`

const macAddress = (prefix: string, number: number): string =>
  [prefix, ...(number.toString(16).toUpperCase().padStart(6, '0').match(/../g) ?? [])].join(':')
