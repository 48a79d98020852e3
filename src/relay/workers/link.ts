import type { Duplex } from 'node:stream'
import type { MaybePromise } from '../core/maybe-promise.js'
import type { FrameReader } from './frame-reader.js'
import { FrameSplitter } from './frame-splitter.js'
import { FrameWriter } from './frame-writer.js'
import { KINDS, type Kind, NUMBER_OF } from './kinds.js'

const NOBODY_WAITS = 0

export type Write = (out: FrameWriter) => void
/** Takes note of what was said. */
export type Listener = (fields: FrameReader) => void
/** Reads what was asked at once, and may answer later. */
export type Answerer = (fields: FrameReader) => MaybePromise<Write>

/** The answer that says nothing but that it is done. */
export const done: Write = () => undefined

interface Waiting {
  readonly read: (fields: FrameReader) => void
  readonly fail: (error: Error) => void
}

/** How far the other side may fall behind: it is on this machine, so whoever is so far behind reads nothing any more. */
const MAX_UNSENT_BYTES = 512 * 1024 * 1024

/** Whoever has much to say waits, where the other side has not taken so much yet. */
const FAR_BEHIND_BYTES = 16 * 1024 * 1024

export class LinkBroken extends Error {
  override readonly name = 'LinkBroken'
}

/**
 * One end of the stream between two processes of a relay. What is said arrives in the order in which it was said, and what is
 * said in one turn of the event loop leaves in one write.
 */
export class Link {
  /** Settles when nothing can be said or heard any more. */
  readonly closed: Promise<void>
  readonly #stream: Duplex
  readonly #out = new FrameWriter()
  readonly #waiting = new Map<number, Waiting>()
  readonly #listeners: Partial<Record<Kind, Listener>> = {}
  readonly #answerers: Partial<Record<Kind, Answerer>> = {}
  #lastId = NOBODY_WAITS
  #isBroken = false
  readonly #flush = (): void => {
    if (this.#isBroken || this.#out.length === 0) return
    this.#stream.write(this.#out.take())
    if (this.#stream.writableLength > MAX_UNSENT_BYTES) this.#stream.destroy()
  }

  /** `fault` hears of what no other process of this program would say. */
  constructor(stream: Duplex, fault: (error: unknown) => void) {
    this.#stream = stream
    const frames = new FrameSplitter((frame) => this.#receive(frame))
    stream.on('data', (piece: Buffer) => {
      try {
        frames.receive(piece)
      } catch (error) {
        fault(error)
        // After a frame that cannot be read none is where it should be.
        stream.destroy()
      }
    })
    stream.on('error', () => undefined)
    // The other process has ended.
    stream.on('end', () => stream.destroy())
    this.closed = new Promise((resolve) => {
      stream.once('close', () => {
        this.#break()
        resolve()
      })
    })
  }

  /** What the other side may say. */
  hears(listeners: Partial<Record<Kind, Listener>>): void {
    Object.assign(this.#listeners, listeners)
  }

  /** What the other side may ask. */
  answers(answerers: Partial<Record<Kind, Answerer>>): void {
    Object.assign(this.#answerers, answerers)
  }

  /** Says something that is not answered. */
  tell(kind: Kind, write: Write): void {
    this.#write(kind, NOBODY_WAITS, write)
  }

  /** A whole frame that may go to others too. */
  forward(frame: Buffer): void {
    if (this.#isBroken) return
    this.#schedule()
    this.#out.append(frame)
  }

  ask<T>(kind: Kind, write: Write, read: (fields: FrameReader) => T): Promise<T> {
    if (this.#isBroken) return Promise.reject(new LinkBroken('the other process is gone'))
    this.#lastId = this.#lastId === 0xffffffff ? 1 : this.#lastId + 1
    const id = this.#lastId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { read: (fields) => resolve(read(fields)), fail: reject })
      this.#write(kind, id, write)
    })
  }

  /** Settles when the other side is not far behind any more, or is gone. */
  async caughtUp(): Promise<void> {
    if (this.#stream.writableLength < FAR_BEHIND_BYTES) return
    const drained = new Promise<void>((resolve) => this.#stream.once('drain', resolve))
    await Promise.race([drained, this.closed])
  }

  /** What was said before still goes out. */
  end(): void {
    this.#flush()
    this.#stream.end()
  }

  #write(kind: Kind, id: number, write: Write): void {
    if (this.#isBroken) return
    this.#schedule()
    this.#out.begin(NUMBER_OF[kind], id)
    write(this.#out)
    this.#out.finish()
  }

  #schedule(): void {
    if (this.#out.length === 0) setImmediate(this.#flush)
  }

  #receive(frame: FrameReader): void {
    const kind = KINDS[frame.byte()]
    const id = frame.whole()
    if (kind === 'answer' || kind === 'failure') {
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      if (kind === 'answer') waiting?.read(frame)
      else waiting?.fail(new Error(frame.text()))
      return
    }
    if (id !== NOBODY_WAITS) {
      this.#answer(kind, id, frame)
      return
    }
    const listener = kind && this.#listeners[kind]
    if (listener === undefined) throw new RangeError(`nobody listens to ${kind}`)
    listener(frame)
  }

  #answer(kind: Kind | undefined, id: number, frame: FrameReader): void {
    const answerer = kind && this.#answerers[kind]
    // A process that has just been started may not know yet.
    const write = answerer === undefined ? Promise.reject(new Error(`no answer to ${kind}`)) : answerer(frame)
    if (!(write instanceof Promise)) {
      this.#write('answer', id, write)
      return
    }
    write.then(
      (later) => this.#write('answer', id, later),
      (error) => this.#write('failure', id, (out) => out.text(String(error)))
    )
  }

  #break(): void {
    this.#isBroken = true
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { fail } of waiting) fail(new LinkBroken('the other process is gone'))
  }
}
