import {
  EVENT_ALIAS,
  EVENT_DOCUMENT,
  EVENT_MAPPING,
  EVENT_POP,
  EVENT_SCALAR,
  EVENT_SEQUENCE,
  type Event,
  getScalarValue
} from 'js-yaml'

// Where values are in a file of YAML or JSON, for error messages.

/** Where a value is: `/0/hosts/1`. The root is the empty text. */
export type Pointer = string

/** The line of a value, or of the nearest one around it for a value that is missing. Lines count from 1. */
export type LineOf = (pointer: Pointer) => number

/** `events` are those of `parseEvents` for the text. */
export const linesOf = (events: readonly Event[], text: string): LineOf => {
  const positions = positionsIn(events, text)
  return (pointer) => text.slice(0, positionOf(pointer, positions)).split('\n').length
}

const positionOf = (pointer: Pointer, positions: ReadonlyMap<Pointer, number>): number => {
  const position = positions.get(pointer)
  if (position !== undefined || pointer === '') return position ?? 0
  return positionOf(pointer.slice(0, pointer.lastIndexOf('/')), positions)
}

/** A list or an object whose end has not been reached yet. */
interface Container {
  readonly pointer: Pointer
  readonly isObject: boolean
  /** The number of entries so far; for an object, of names and values. */
  count: number
  name: string
}

/** Where each value begins; a field of an object begins with its name. */
const positionsIn = (events: readonly Event[], text: string): ReadonlyMap<Pointer, number> => {
  const positions = new Map<Pointer, number>()
  const open: Container[] = []
  for (const event of events) {
    if (event.type === EVENT_DOCUMENT) continue
    if (event.type === EVENT_POP) {
      open.pop()
      continue
    }
    const start = startOf(event)
    const parent = open.at(-1)
    const isName = parent?.isObject === true && parent.count % 2 === 0
    if (isName && event.type === EVENT_SCALAR) parent.name = getScalarValue(text, event)
    const pointer = parent === undefined ? '' : `${parent.pointer}/${parent.isObject ? parent.name : parent.count}`
    if (parent !== undefined) parent.count += 1
    if (!positions.has(pointer)) positions.set(pointer, start)
    if (event.type === EVENT_MAPPING || event.type === EVENT_SEQUENCE)
      open.push({ pointer, isObject: event.type === EVENT_MAPPING, count: 0, name: '' })
  }
  return positions
}

const startOf = (event: Exclude<Event, { type: typeof EVENT_DOCUMENT | typeof EVENT_POP }>): number => {
  if (event.type === EVENT_SCALAR) return event.valueStart
  return event.type === EVENT_ALIAS ? event.anchorStart : event.start
}
