import type { Publication } from './broker.js'

/**
 * Deltas in the format of Fossil SCM, over bytes: `<length of the result>\n`, then copies `<length>@<place in the base>,`
 * and insertions `<length>:<bytes>`, then `<checksum>;`. Numbers are written with 64 digits.
 *
 * Blocks of the base go into a hash table, a rolling hash walks over the target, and a hit is stretched both ways. A 2.5 KB
 * batch of positions takes about 45 µs, once for all subscribers.
 */

/** What a copy must at least share with a block of the base. */
const BLOCK = 16

/** How many blocks of equal hash are tried; more would only pay for a base that repeats itself anyway. */
const MAX_TRIES = 8

/** A match of this length is not compared with others. */
const GOOD_MATCH = 48

/** No character of UTF-8 has more bytes behind its first. */
const MAX_CONTINUATION = 3

const DIGITS = Buffer.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~')
const [NEWLINE, AT, COMMA, COLON, SEMICOLON] = [0x0a, 0x40, 0x2c, 0x3a, 0x3b] as const

// h = b0·M^15 + b1·M^14 + … + b15, so that the oldest byte leaves by subtracting it times M^16 after the step.
const MULTIPLIER = 0x01000193
let power = 1
for (let step = 0; step < BLOCK; step++) power = Math.imul(power, MULTIPLIER)
const LEAVING = power

/** More than the checksum, the header and the last insertion's length need. */
const OVERHEAD = 64

/**
 * What makes `target` of `base`. Where the target is UTF-8, so is the delta: no copy begins or ends within a character, and
 * it can travel as text. It can be longer than the target; whether it pays is for the caller to see.
 */
export const createDelta = (base: Uint8Array, target: Uint8Array): Uint8Array => {
  const delta = new DeltaWriter(target)
  if (base.length >= BLOCK && target.length >= BLOCK) copyWhatIsShared(new BlockIndex(base), target, delta)
  return delta.end()
}

const copyWhatIsShared = (index: BlockIndex, target: Uint8Array, delta: DeltaWriter): void => {
  const last = target.length - BLOCK
  let hash = hashAt(target, 0)
  let place = 0
  for (;;) {
    if (index.find(hash, target, place, delta.written)) {
      const end = delta.copy(index.from, index.start, index.end)
      if (end > place) {
        place = end
        if (place > last) return
        hash = hashAt(target, place)
        continue
      }
    }
    if (place === last) return
    hash =
      (Math.imul(hash, MULTIPLIER) + (target[place + BLOCK] as number) - Math.imul(target[place] as number, LEAVING)) |
      0
    place += 1
  }
}

const hashAt = (bytes: Uint8Array, start: number): number => {
  let hash = 0
  for (let place = start; place < start + BLOCK; place++)
    hash = (Math.imul(hash, MULTIPLIER) + (bytes[place] as number)) | 0
  return hash
}

/** The blocks of a base by their hash. The best match found last stands in `from`, `start` and `end`: no object per try. */
class BlockIndex {
  readonly #base: Uint8Array
  /** 1 + number of the newest block of each slot; 0 is none. */
  readonly #newest: Uint32Array
  /** 1 + number of the block before it in the same slot. */
  readonly #before: Uint32Array
  readonly #shift: number
  /** Place in the base where the match begins. */
  from = 0
  /** Place in the target where it begins, and where it ends. */
  start = 0
  end = 0

  constructor(base: Uint8Array) {
    const blocks = Math.floor(base.length / BLOCK)
    const bits = Math.max(4, 33 - Math.clz32(blocks))
    this.#base = base
    this.#shift = 32 - bits
    this.#newest = new Uint32Array(1 << bits)
    this.#before = new Uint32Array(blocks)
    for (let block = 0; block < blocks; block++) {
      const slot = this.#slotOf(hashAt(base, block * BLOCK))
      this.#before[block] = this.#newest[slot] as number
      this.#newest[slot] = block + 1
    }
  }

  /** Looks for the longest match around a place of the target, not before `earliest`. */
  find(hash: number, target: Uint8Array, place: number, earliest: number): boolean {
    let block = this.#newest[this.#slotOf(hash)] as number
    if (block === 0) return false
    // Where the match before this one would go on: publications mostly differ in a few characters, in the same places.
    let longest = this.#match(target, place, place + this.from - this.start, earliest, 0)
    for (let tries = 0; block !== 0 && tries < MAX_TRIES && longest < GOOD_MATCH; tries++) {
      longest = this.#match(target, place, (block - 1) * BLOCK, earliest, longest)
      block = this.#before[block - 1] as number
    }
    return longest > 0
  }

  /** The length of the match if it is the longest so far, else what was the longest. */
  #match(target: Uint8Array, place: number, from: number, earliest: number, longest: number): number {
    if (this.#base[from] !== target[place]) return longest
    const forth = this.#sharedForth(target, place, from)
    if (forth < BLOCK) return longest
    const back = this.#sharedBack(target, place, from, earliest)
    if (forth + back <= longest) return longest
    this.from = from - back
    this.start = place - back
    this.end = place + forth
    return forth + back
  }

  #sharedForth(target: Uint8Array, place: number, from: number): number {
    const base = this.#base
    const most = Math.min(base.length - from, target.length - place)
    let count = 0
    while (count < most && base[from + count] === target[place + count]) count += 1
    return count
  }

  #sharedBack(target: Uint8Array, place: number, from: number, earliest: number): number {
    const base = this.#base
    const most = Math.min(from, place - earliest)
    let count = 0
    while (count < most && base[from - count - 1] === target[place - count - 1]) count += 1
    return count
  }

  /** The low bits of the sum know little of the first bytes; the high bits of a product know of all. */
  #slotOf(hash: number): number {
    return Math.imul(hash, 0x9e3779b1) >>> this.#shift
  }
}

/** Writes commands; what no copy covers is inserted. */
class DeltaWriter {
  readonly #target: Uint8Array
  readonly #bytes: Buffer
  #length = 0
  /** How much of the target is said. */
  written = 0

  constructor(target: Uint8Array) {
    this.#target = target
    // A copy is written only where that is shorter, so no more than this is ever needed.
    this.#bytes = Buffer.allocUnsafe(target.length + OVERHEAD)
    this.#number(target.length)
    this.#byte(NEWLINE)
  }

  /** Copies `[start, end)` of the target, which the base has at `from`; tells where it stopped, or 0 if it does not pay. */
  copy(from: number, start: number, end: number): number {
    const target = this.#target
    let [first, stop] = [start, end]
    // What is inserted before and behind must be whole characters.
    for (let step = 0; step < MAX_CONTINUATION && first < stop && isContinuation(target[first]); step++) first += 1
    for (let step = 0; step < MAX_CONTINUATION && stop > first && isContinuation(target[stop]); step++) stop -= 1
    const place = from + (first - start)
    const cost = digits(stop - first) + digits(place) + digits(first - this.written) + 3
    if (stop - first <= cost) return 0

    this.#insert(first)
    this.#number(stop - first)
    this.#byte(AT)
    this.#number(place)
    this.#byte(COMMA)
    this.written = stop
    return stop
  }

  end(): Uint8Array {
    this.#insert(this.#target.length)
    this.#number(checksum(this.#target))
    this.#byte(SEMICOLON)
    return this.#bytes.subarray(0, this.#length)
  }

  #insert(stop: number): void {
    if (stop === this.written) return
    this.#number(stop - this.written)
    this.#byte(COLON)
    this.#bytes.set(this.#target.subarray(this.written, stop), this.#length)
    this.#length += stop - this.written
    this.written = stop
  }

  #number(value: number): void {
    const count = digits(value)
    let rest = value
    for (let place = this.#length + count - 1; place >= this.#length; place--) {
      this.#bytes[place] = DIGITS[rest & 63] as number
      rest = rest >>> 6
    }
    this.#length += count
  }

  #byte(value: number): void {
    this.#bytes[this.#length] = value
    this.#length += 1
  }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** How many digits a number below 2^32 has. */
const digits = (value: number): number => (value === 0 ? 1 : Math.ceil((32 - Math.clz32(value)) / 6))

/** The sum of all big-endian words of four bytes, the last one filled up with zeros. */
const checksum = (bytes: Uint8Array): number => {
  const whole = bytes.length & ~3
  let sum = 0
  for (let place = 0; place < whole; place += 4) {
    sum =
      (sum +
        (((bytes[place] as number) << 24) |
          ((bytes[place + 1] as number) << 16) |
          ((bytes[place + 2] as number) << 8) |
          (bytes[place + 3] as number))) |
      0
  }
  for (let place = whole; place < bytes.length; place++) {
    sum = (sum + ((bytes[place] as number) << (24 - 8 * (place - whole)))) | 0
  }
  return sum >>> 0
}

/**
 * The publications of a channel as differences, each to the one before. One patch serves all subscribers that hold the
 * one before.
 */
export class DeltaChain {
  readonly #channel: string
  readonly #patches: DeltaPatches
  #base: Publication | null = null
  #patch: string | null = null

  constructor(channel: string, patches: DeltaPatches) {
    this.#channel = channel
    this.#patches = patches
  }

  /** Of the last publication: the patch as a JSON string, or null where it must go out whole. */
  get patch(): string | null {
    return this.#patch
  }

  /** Whether who holds the publication at this offset can take the next patch. */
  canPatchFrom(offset: number): boolean {
    return this.#base === null || (offset > 0 && this.#base.offset === offset)
  }

  advance(publication: Publication, epoch: string): void {
    const base = this.#base
    this.#patch =
      base !== null && publication.delta ? this.#patches.between(this.#channel, epoch, base, publication) : null
    this.#base = publication
  }

  /** Nobody takes deltas any more, so nothing has to be remembered. */
  reset(): void {
    this.#base = null
    this.#patch = null
  }
}

/** What is remembered of patches at most, in characters. */
const MAX_LENGTH = 16 * 1024 * 1024
/** What a patch, and a stream, cost beside their characters. */
const ENTRY_LENGTH = 100

/** Of one stream, by offset of the publication; null where the patch does not pay. */
type StreamPatches = Map<number, string | null>

/**
 * Patches between neighbours in the streams of channels. Each is made once, for those who get it live and for all who
 * recover. Those of the channel that was not asked for for the longest time are forgotten first.
 */
export class DeltaPatches {
  readonly #maxLength: number
  /** In the order in which they were last used. */
  readonly #streams = new Map<string, StreamPatches>()
  #length = 0

  constructor(maxLength = MAX_LENGTH) {
    this.#maxLength = maxLength
  }

  /** Characters of all that is remembered. */
  get length(): number {
    return this.#length
  }

  /** What makes `target` of the publication before it, as a JSON string; null where it must go out whole. */
  between(channel: string, epoch: string, base: Publication, target: Publication): string | null {
    return this.#find(this.#use(channel, epoch), base, target)
  }

  /** For publications that follow each other: the patch of each to the one before it, null where it must go out whole. */
  chain(channel: string, epoch: string, publications: readonly Publication[]): readonly (string | null)[] {
    const stream = this.#use(channel, epoch)
    const patches: (string | null)[] = []
    let base: Publication | null = null
    for (const target of publications) {
      patches.push(base === null || !target.delta ? null : this.#find(stream, base, target))
      base = target
    }
    return patches
  }

  /** The patches of a stream, which now is the one that was used last. */
  #use(channel: string, epoch: string): StreamPatches {
    const key = `${epoch} ${channel}`
    const known = this.#streams.get(key)
    if (known !== undefined) this.#streams.delete(key)
    else this.#grow(ENTRY_LENGTH + key.length)
    const stream = known ?? new Map()
    this.#streams.set(key, stream)
    return stream
  }

  #find(stream: StreamPatches, base: Publication, target: Publication): string | null {
    // Publications that are not kept have no place to be found by.
    if (base.offset === 0 || base.offset + 1 !== target.offset) return patchText(base, target)
    const known = stream.get(target.offset)
    if (known !== undefined) return known
    const patch = patchText(base, target)
    stream.set(target.offset, patch)
    this.#grow(lengthOf(patch))
    return patch
  }

  /** Makes room by forgetting patches of the streams that were not used for the longest time, the oldest first. */
  #grow(length: number): void {
    this.#length += length
    for (const [key, stream] of this.#streams) {
      for (const [offset, patch] of stream) {
        if (this.#length <= this.#maxLength) return
        stream.delete(offset)
        this.#length -= lengthOf(patch)
      }
      if (this.#length <= this.#maxLength) return
      this.#streams.delete(key)
      this.#length -= ENTRY_LENGTH + key.length
    }
  }
}

const lengthOf = (patch: string | null): number => ENTRY_LENGTH + (patch?.length ?? 0)

/** The patch as a JSON string; null where it does not pay. */
const patchText = (base: Publication, target: Publication): string | null => {
  const bytes = Buffer.from(target.data)
  const patch = createDelta(Buffer.from(base.data), bytes)
  return patch.length < bytes.length ? JSON.stringify(Buffer.from(patch).toString()) : null
}
