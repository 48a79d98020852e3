import { between, integerBetween, pick, type Random } from '../random.js'
import { REGIONS, type Region } from '../site/layout.js'

/** Meetings overlap, so that there is always one. */
const EVERY_MS = 300_000
const LASTS_MS = [420_000, 720_000] as const
const MOST_TOO_MANY = 3

const MEETING_ROOMS = REGIONS.filter(({ kind }) => kind === 'meeting')

interface Meeting {
  readonly room: Region
  readonly participants: ReadonlySet<string>
  leftMs: number
}

/** Meetings of people of one building, often with a few more than the room is made for. */
export class Meetings {
  readonly #random: Random
  #meetings: readonly Meeting[] = []
  #untilNextMs = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** Ends meetings and starts the next one. `peopleOf` returns the ids of the people of a building. */
  advance(ms: number, peopleOf: (buildingId: string) => readonly string[]): void {
    for (const meeting of this.#meetings) meeting.leftMs -= ms
    this.#meetings = this.#meetings.filter(({ leftMs }) => leftMs > 0)
    this.#untilNextMs -= ms
    if (this.#untilNextMs > 0) return
    this.#untilNextMs = EVERY_MS
    const room = pick(this.#random, MEETING_ROOMS)
    if (!this.#meetings.some((meeting) => meeting.room === room)) this.#start(room, peopleOf(room.buildingId))
  }

  /** The room of the meeting that a person takes part in. */
  roomOf(id: string): Region | undefined {
    return this.#meetings.find(({ participants }) => participants.has(id))?.room
  }

  #start(room: Region, people: readonly string[]): void {
    const free = people.filter((id) => this.roomOf(id) === undefined)
    const wanted = (room.capacity ?? 0) + integerBetween(this.#random, 1, MOST_TOO_MANY)
    const participants = new Set<string>()
    while (participants.size < Math.min(wanted, free.length)) participants.add(pick(this.#random, free))
    this.#meetings = [...this.#meetings, { room, participants, leftMs: between(this.#random, ...LASTS_MS) }]
  }
}
