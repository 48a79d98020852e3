/** A JSON list that is written only as far as it stays within a number of bytes. */
export class BoundedList {
  readonly #entries: string[] = []
  readonly #maxBytes: number
  /** Of the list so far, with its brackets and the comma behind each entry. */
  #bytes = 2
  #expectedLength = 2

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get size(): number {
    return this.#entries.length
  }

  get bytes(): number {
    return this.#bytes
  }

  get text(): string {
    return `[${this.#entries.join(',')}]`
  }

  /** Notes that an entry of at least so many characters will come; false where all of them cannot fit. */
  expect(length: number): boolean {
    this.#expectedLength += length
    return this.#expectedLength <= this.#maxBytes
  }

  /** False, and nothing added, where the entry does not fit. */
  add(entry: string): boolean {
    const bytes = this.#bytes + Buffer.byteLength(entry) + 1
    if (bytes > this.#maxBytes) return false
    this.#bytes = bytes
    this.#entries.push(entry)
    return true
  }
}
