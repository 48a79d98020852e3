import type { EncodedMessage, MessageParts } from '../codec/codec.js'
import { isInParts } from '../codec/message-parts.js'
import type { Framing } from '../codec/transport.js'
import type { Outbox } from '../fan-out/outbox.js'

/** Replies are joined up to this size. */
const JOINED_REPLIES_BYTES = 64 * 1024
/** The line break between two replies in JSON. */
const SEPARATOR_BYTES = 1
/** Allowance for everything in a reply except publications: id, fields, frame header. */
const REPLY_OVERHEAD_BYTES = 1024

/** The replies to one client. They are held while a frame is processed, so that its commands are answered in one frame. */
export class HeldReplies {
  readonly #outbox: Outbox
  /** Null while replies are sent at once. */
  #held: EncodedMessage[] | null = null
  #heldBytes = 0

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  /** Collects replies until `send`. */
  hold(): void {
    this.#held ??= []
  }

  /** Whether replies wait to be sent. */
  get isWaiting(): boolean {
    return this.#held !== null && this.#held.length > 0
  }

  /** Sends the held replies; later ones are sent at once. */
  send(): void {
    const replies = this.#held
    this.#held = null
    this.#heldBytes = 0
    if (replies === null || replies.length === 0) return
    const { codec } = this.#outbox.transport.framing
    writeMessage(this.#outbox, replies.length === 1 ? (replies[0] ?? '') : codec.join(replies))
  }

  /** Sends the held replies and continues to hold later ones. */
  flush(): void {
    if (!this.isWaiting) return
    this.send()
    this.hold()
  }

  /** Holds or sends a reply of this size. An exempt reply may be larger than `queue_max_size`. */
  add(reply: EncodedMessage, bytes: number, isExempt: boolean): void {
    if (this.#held === null) {
      writeMessage(this.#outbox, reply, isExempt)
      return
    }
    const maxBytes = Math.min(JOINED_REPLIES_BYTES, this.#outbox.maxBytes)
    if (this.#heldBytes + bytes > maxBytes) this.flush()
    if (isExempt && bytes > maxBytes) {
      writeMessage(this.#outbox, reply, isExempt)
      return
    }
    this.#held.push(reply)
    this.#heldBytes += bytes + SEPARATOR_BYTES
  }

  /** Maximum size of the next reply, so that the client stays within `queue_max_size`. */
  get bytesLeft(): number {
    const { maxBytes, unsentBytes } = this.#outbox
    return Math.max(0, maxBytes - unsentBytes - this.#heldBytes - REPLY_OVERHEAD_BYTES)
  }
}

/** Sends one message in its own frame. */
export const writeMessage = (outbox: Outbox, message: EncodedMessage, isExempt = false): void => {
  const frame = framed(message, outbox.transport.framing)
  if (isExempt) outbox.sendExempt(frame)
  else outbox.sendParts(frame)
}

const framed = (message: EncodedMessage, framing: Framing): MessageParts => {
  if (!isInParts(message)) return [framing.frame(message)]
  return framing.frameParts?.(message) ?? [framing.frame(Buffer.concat(message))]
}
