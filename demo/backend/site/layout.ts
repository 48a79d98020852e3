import { box, contains, type Point, type Rect, type Wall } from './geometry.js'

// The buildings of the demo. Plans, zones and receivers are drawn from this, and the simulator walks in it, so that nobody
// on the page ever goes where the plan has a wall. All lengths are in metres.

export type ZoneKind = 'corridor' | 'stairs' | 'office' | 'laboratory' | 'meeting' | 'common' | 'restricted' | 'muster'

/** A room, a corridor or a place outside: a rectangle, so that whoever is inside can walk straight to every door of it. */
export interface Region {
  readonly zoneId: string
  readonly name: string
  readonly kind: ZoneKind
  readonly rect: Rect
}

export interface Door extends Point {
  readonly width: number
  /** Which way one walks through it. */
  readonly way: 'x' | 'y'
  /** The zones on its two sides, the one with the smaller coordinate first. */
  readonly between: readonly [string, string]
}

export interface FloorLayout {
  readonly floorId: string
  readonly buildingId: string
  readonly name: string
  readonly level: number
  readonly width: number
  readonly height: number
  readonly regions: readonly Region[]
  readonly doors: readonly Door[]
  readonly walls: readonly Wall[]
}

export interface BuildingLayout {
  readonly buildingId: string
  readonly name: string
  readonly code: string
  readonly floors: readonly FloorLayout[]
}

interface RoomPlan {
  readonly name: string
  readonly kind: ZoneKind
  /** Its share of the length of its row. */
  readonly share: number
}

interface BuildingPlan {
  readonly name: string
  readonly code: string
  readonly length: number
  readonly depth: number
  /** Where the corridor begins, from the north wall. */
  readonly corridorAt: number
  /** From the ground up: the rooms north of the corridor, and those south of it. */
  readonly floors: readonly (readonly [string, string])[]
}

const CORRIDOR_WIDTH = 3
const STAIRS_LENGTH = 6
const DOOR_WIDTH = 1.4
const OUTSIDE_LENGTH = 14

// A room is its name, its kind and, where it is not 1, its share of the row.
const PLANS: readonly BuildingPlan[] = [
  {
    name: 'Main House',
    code: 'MH',
    length: 60,
    depth: 25,
    corridorAt: 11,
    floors: [
      ['Reception:common:1.4, Post Room:office, Visitor Lounge:common', 'Canteen:common:2, Kitchen:restricted'],
      [
        'Finance:office, People Team:office:1.2, Board Room:meeting',
        'Open Space East:office:1.8, Meeting Room Oak:meeting'
      ],
      [
        'Operations Centre:restricted:1.3, Support:office, Library:common',
        'Open Space West:office:1.5, Server Room:restricted'
      ]
    ]
  },
  {
    name: 'Research Wing',
    code: 'RW',
    length: 48,
    depth: 22,
    corridorAt: 9.5,
    floors: [
      [
        'Goods In:common, Chemical Store:restricted:0.8, Wet Lab 1:laboratory',
        'Wet Lab 2:laboratory:1.4, Cold Room:restricted:0.8'
      ],
      [
        'Optics Lab:laboratory, Dark Room:restricted:0.7, Writing Room:office',
        'Instrument Hall:laboratory:1.6, Meeting Room Elm:meeting'
      ],
      [
        'Data Science:office:1.3, Seminar Room:meeting, Tea Kitchen:common:0.7',
        'Imaging Suite:laboratory:1.3, Sample Archive:restricted'
      ]
    ]
  },
  {
    name: 'Workshop',
    code: 'WS',
    length: 54,
    depth: 24,
    corridorAt: 12,
    floors: [
      [
        'Machine Hall:laboratory:1.8, Tool Store:restricted:0.8, Welding Bay:laboratory',
        'Loading Dock:common:1.3, Paint Shop:restricted'
      ],
      [
        'Assembly Line:laboratory:1.7, Quality:office, First Aid:common:0.7',
        'Electronics:laboratory:1.4, Parts Library:common'
      ],
      [
        'Design Studio:office:1.4, Print Room:common:0.7, Planning:office',
        'Prototype Lab:laboratory:1.3, Meeting Room Ash:meeting'
      ]
    ]
  }
]

const FLOOR_NAMES = ['Ground floor', 'First floor', 'Second floor'] as const

/** The whole site. Zones are numbered from 1 and floors from f-1, across all buildings. */
export const siteLayout = (): readonly BuildingLayout[] => {
  let zones = 0
  let floors = 0
  const nextZone = (): string => String(++zones)
  return PLANS.map((plan, index) => {
    const buildingId = String(index + 1)
    return {
      buildingId,
      name: plan.name,
      code: plan.code,
      floors: plan.floors.map((_, level) => layFloor(plan, buildingId, `f-${++floors}`, level, nextZone))
    }
  })
}

/** Rooms along both sides of a corridor, stairs at its west end, and on the ground a way out to the muster point at its east end. */
const layFloor = (
  plan: BuildingPlan,
  buildingId: string,
  floorId: string,
  level: number,
  nextZone: () => string
): FloorLayout => {
  const { length, depth, corridorAt, floors } = plan
  const southAt = corridorAt + CORRIDOR_WIDTH
  const [northRooms = '', southRooms = ''] = floors[level] ?? []

  const region = (name: string, kind: ZoneKind, rect: Rect): Region => ({ zoneId: nextZone(), name, kind, rect })
  const corridor = region(`Corridor ${plan.code}-${level}`, 'corridor', box(0, corridorAt, length, CORRIDOR_WIDTH))
  const stairs = region(`Stairs ${plan.code}-${level}`, 'stairs', box(0, southAt, STAIRS_LENGTH, depth - southAt))
  const north = layRow(roomsIn(northRooms), box(0, 0, length, corridorAt), region)
  const southRow = box(STAIRS_LENGTH, southAt, length - STAIRS_LENGTH, depth - southAt)
  const south = layRow(roomsIn(southRooms), southRow, region)
  const assembly = box(length, corridorAt - 4, OUTSIDE_LENGTH, CORRIDOR_WIDTH + 8)
  const outside = level === 0 ? [region(`Assembly Area ${plan.code}`, 'muster', assembly)] : []

  const doors: Door[] = [
    ...north.map((room) => door('y', doorX(room), corridorAt, room, corridor)),
    ...[stairs, ...south].map((room) => door('y', doorX(room), southAt, corridor, room)),
    ...outside.map((area) => door('x', length, corridorAt + CORRIDOR_WIDTH / 2, corridor, area))
  ]
  return {
    floorId,
    buildingId,
    name: FLOOR_NAMES[level] ?? `Floor ${level}`,
    level,
    width: outside.length > 0 ? length + OUTSIDE_LENGTH : length,
    height: depth,
    regions: [corridor, stairs, ...north, ...south, ...outside],
    doors,
    walls: [
      ...horizontalWall(0, length, 0, []),
      ...horizontalWall(0, length, corridorAt, doors),
      ...horizontalWall(0, length, southAt, doors),
      ...horizontalWall(0, length, depth, []),
      [0, 0, 0, depth],
      ...verticalWall(0, depth, length, doors),
      ...[...north.slice(1), ...south].map(({ rect }): Wall => [rect.x, rect.y, rect.x, rect.y + rect.height])
    ]
  }
}

const roomsIn = (text: string): RoomPlan[] =>
  text.split(', ').map((room) => {
    const [name = '', kind, share = '1'] = room.split(':')
    return { name, kind: kind as ZoneKind, share: Number(share) }
  })

const layRow = (
  rooms: readonly RoomPlan[],
  row: Rect,
  region: (name: string, kind: ZoneKind, rect: Rect) => Region
): Region[] => {
  const shares = rooms.reduce((sum, { share }) => sum + share, 0)
  let x = row.x
  return rooms.map(({ name, kind, share }) => {
    const width = (row.width * share) / shares
    const laid = region(name, kind, { ...row, x, width })
    x += width
    return laid
  })
}

// Not in the middle of the wall: people who come out of two rooms would meet in the door of a third.
const doorX = ({ rect }: Region): number => rect.x + rect.width * 0.4

const door = (way: Door['way'], x: number, y: number, near: Region, far: Region): Door => ({
  x,
  y,
  width: DOOR_WIDTH,
  way,
  between: [near.zoneId, far.zoneId]
})

const horizontalWall = (from: number, to: number, y: number, doors: readonly Door[]): Wall[] =>
  pieces(from, to, gapsAt(doors, 'y', y)).map(([start, end]): Wall => [start, y, end, y])

const verticalWall = (from: number, to: number, x: number, doors: readonly Door[]): Wall[] =>
  pieces(from, to, gapsAt(doors, 'x', x)).map(([start, end]): Wall => [x, start, x, end])

type Span = readonly [number, number]

const gapsAt = (doors: readonly Door[], way: Door['way'], at: number): Span[] =>
  doors
    .filter((door) => door.way === way && door[way] === at)
    .map((door) => (way === 'y' ? door.x : door.y))
    .sort((one, other) => one - other)
    .map((middle): Span => [middle - DOOR_WIDTH / 2, middle + DOOR_WIDTH / 2])

/** What is left of a wall between its doors. */
const pieces = (from: number, to: number, gaps: readonly Span[]): Span[] => {
  const ends = [...gaps.map(([start]) => start), to]
  return [from, ...gaps.map(([, end]) => end)].map((start, index): Span => [start, ends[index] ?? to])
}

export const regionAt = (floor: FloorLayout, point: Point): Region | undefined =>
  floor.regions.find(({ rect }) => contains(rect, point))
