import { box, type Point, type Rect, type Wall } from './geometry.js'

// The buildings of the demo. Plans, zones, receivers and the simulator's paths are all derived from this layout, so that
// simulated people do not walk through walls. Lengths are in metres.

export type ZoneKind = 'corridor' | 'stairs' | 'office' | 'laboratory' | 'meeting' | 'common' | 'restricted' | 'muster'

/** A room, a corridor or an outdoor area. A rectangle, so that every door can be reached in a straight line. */
export interface Region {
  readonly zoneId: string
  readonly floorId: string
  readonly buildingId: string
  readonly name: string
  readonly kind: ZoneKind
  readonly rect: Rect
  /** The maximum number of people; null for passages. */
  readonly capacity: number | null
}

export interface Door extends Point {
  readonly width: number
  /** The axis along which people pass it. */
  readonly way: 'x' | 'y'
  /** The zones on its two sides, the one with the smaller coordinate first. */
  readonly between: readonly [string, string]
}

const CORRIDOR_WIDTH = 3
const STAIRS_LENGTH = 6
const DOOR_WIDTH = 1.4
const OUTSIDE_LENGTH = 14

// The first line of a building: name, code, length, depth, and the distance of the corridor from the north wall. Then its
// floors from the ground up: the rooms north of the corridor, and after a slash those south of it. A room: name, kind, and
// its share of the row if it is not 1.
const PLANS = `
Main House, MH, 60, 25, 11
Reception:common:1.4, Post Room:office, Visitor Lounge:common
/ Canteen:common:2, Kitchen:restricted
Finance:office, People Team:office:1.2, Board Room:meeting
/ Open Space East:office:1.8, Meeting Room Oak:meeting
Operations Centre:restricted:1.3, Support:office, Library:common
/ Open Space West:office:1.5, Server Room:restricted

Research Wing, RW, 48, 22, 9.5
Goods In:common, Chemical Store:restricted:0.8, Wet Lab 1:laboratory
/ Wet Lab 2:laboratory:1.4, Cold Room:restricted:0.8
Optics Lab:laboratory, Dark Room:restricted:0.7, Writing Room:office
/ Instrument Hall:laboratory:1.6, Meeting Room Elm:meeting
Data Science:office:1.3, Seminar Room:meeting, Tea Kitchen:common:0.7
/ Imaging Suite:laboratory:1.3, Sample Archive:restricted

Workshop, WS, 54, 24, 12
Machine Hall:laboratory:1.8, Tool Store:restricted:0.8, Welding Bay:laboratory
/ Loading Dock:common:1.3, Paint Shop:restricted
Assembly Line:laboratory:1.7, Quality:office, First Aid:common:0.7
/ Electronics:laboratory:1.4, Parts Library:common
Design Studio:office:1.4, Print Room:common:0.7, Planning:office
/ Prototype Lab:laboratory:1.3, Meeting Room Ash:meeting`

const SQUARE_METRES_PER_PERSON: Readonly<Record<ZoneKind, number | null>> = {
  corridor: null,
  stairs: null,
  office: 10,
  laboratory: 12,
  meeting: 24,
  common: 4,
  restricted: 25,
  muster: 1
}

const capacityOf = (kind: ZoneKind, { width, height }: Rect): number | null => {
  const perPerson = SQUARE_METRES_PER_PERSON[kind]
  return perPerson === null ? null : Math.max(4, Math.round((width * height) / perPerson))
}

const FLOOR_NAMES = ['Ground floor', 'First floor', 'Second floor']

const SITE = PLANS.split('\n\n').map((text, index) => {
  const [head = '', ...floors] = text.trim().split(/\n(?!\/)/)
  const [name = '', code = '', ...sizes] = head.split(', ')
  return { building: { id: String(index + 1), name, code }, sizes: sizes.map(Number), floors }
})

// Zones are numbered from 1 and floors from f-1, across all buildings.
let zones = 0
let floors = 0

/** Rooms on both sides of a corridor with stairs at its west end; on the ground floor, an exit to the muster point at its east end. */
const layFloor = (
  rooms: string,
  level: number,
  { id: buildingId, code }: (typeof SITE)[number]['building'],
  [length = 0, depth = 0, corridorAt = 0]: readonly number[]
) => {
  floors += 1
  const ids = { buildingId, floorId: `f-${floors}` }
  const southAt = corridorAt + CORRIDOR_WIDTH
  const [northRooms = '', southRooms = ''] = rooms.split('\n/ ')

  const region = (name: string, kind: ZoneKind, rect: Rect): Region => {
    zones += 1
    return { zoneId: String(zones), ...ids, name, kind, rect, capacity: capacityOf(kind, rect) }
  }
  const corridor = region(`Corridor ${code}-${level}`, 'corridor', box(0, corridorAt, length, CORRIDOR_WIDTH))
  const stairs = region(`Stairs ${code}-${level}`, 'stairs', box(0, southAt, STAIRS_LENGTH, depth - southAt))
  const north = layRow(northRooms, box(0, 0, length, corridorAt), region)
  const south = layRow(southRooms, box(STAIRS_LENGTH, southAt, length - STAIRS_LENGTH, depth - southAt), region)
  const assembly = box(length, corridorAt - 4, OUTSIDE_LENGTH, CORRIDOR_WIDTH + 8)
  const outside = level === 0 ? [region(`Assembly Area ${code}`, 'muster', assembly)] : []

  const doors = [
    ...north.map((room) => door('y', doorX(room), corridorAt, room, corridor)),
    ...[stairs, ...south].map((room) => door('y', doorX(room), southAt, corridor, room)),
    ...outside.map((area) => door('x', length, corridorAt + CORRIDOR_WIDTH / 2, corridor, area))
  ]
  return {
    ...ids,
    name: FLOOR_NAMES[level] ?? `Floor ${level}`,
    level,
    width: outside.length > 0 ? length + OUTSIDE_LENGTH : length,
    height: depth,
    regions: [corridor, stairs, ...north, ...south, ...outside],
    doors,
    walls: [
      ...[0, corridorAt, southAt, depth].flatMap((y) => wall('y', y, length, doors)),
      ...[0, length].flatMap((x) => wall('x', x, depth, doors)),
      ...[...north.slice(1), ...south].map(({ rect }): Wall => [rect.x, rect.y, rect.x, rect.y + rect.height])
    ]
  }
}

/** Divides a row into rooms, from west to east. */
const layRow = (text: string, row: Rect, region: (name: string, kind: ZoneKind, rect: Rect) => Region): Region[] => {
  const rooms = text.split(', ').map((room) => room.split(':'))
  const shareOf = ([, , share = '1']: readonly string[]): number => Number(share)
  const shares = rooms.reduce((sum, room) => sum + shareOf(room), 0)
  let x = row.x
  return rooms.map((room) => {
    const [name = '', kind] = room
    const width = (row.width * shareOf(room)) / shares
    // The texts of the rows above contain kinds of zones only.
    const laid = region(name, kind as ZoneKind, { ...row, x, width })
    x += width
    return laid
  })
}

// Not centred: otherwise people who leave two rooms would meet in the doorway of a third.
const doorX = ({ rect }: Region): number => rect.x + rect.width * 0.4

const door = (way: Door['way'], x: number, y: number, near: Region, far: Region): Door => {
  return { x, y, width: DOOR_WIDTH, way, between: [near.zoneId, far.zoneId] }
}

/** The segments of a wall between its doors. `way` is the axis of the doors. */
const wall = (way: Door['way'], at: number, length: number, doors: readonly Door[]): Wall[] => {
  const inIt = doors.filter((door) => door.way === way && door[way] === at)
  const middles = inIt.map(({ x, y }) => (way === 'y' ? x : y))
  const ends = [...middles.map((middle) => middle - DOOR_WIDTH / 2), length]
  return [0, ...middles.map((middle) => middle + DOOR_WIDTH / 2)].map((start, index) => {
    const end = ends[index] ?? length
    return way === 'y' ? [start, at, end, at] : [at, start, at, end]
  })
}

export const BUILDINGS = SITE.map(({ building }) => building)
export const FLOORS = SITE.flatMap(({ building, sizes, floors }) =>
  floors.map((rooms, level) => layFloor(rooms, level, building, sizes))
)
export const REGIONS = FLOORS.flatMap(({ regions }) => regions)
