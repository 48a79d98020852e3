import {
  type Encoded,
  type EncodedMessage,
  type MessageParts,
  payloadBytes,
  type SentPublication,
  type SubscribeReply
} from './codec.js'

export const toBuffer = (message: Encoded): Buffer => (typeof message === 'string' ? Buffer.from(message) : message)

export const isInParts = (message: EncodedMessage): message is MessageParts => Array.isArray(message)

export const partsOf = (message: EncodedMessage): MessageParts => (isInParts(message) ? message : [toBuffer(message)])

export const encodedBytes = (message: EncodedMessage): number =>
  isInParts(message) ? message.reduce((bytes, part) => bytes + part.length, 0) : payloadBytes(message)

/** A shorter list is copied into each reply, which costs less than writing it as a part. */
const MIN_SHARED_LENGTH = 4096

/** Whether all clients that receive the list should share its bytes. */
export const isSharedList = (publications: readonly SentPublication[]): boolean => {
  let length = 0
  for (const { data } of publications) {
    length += data.length
    if (length >= MIN_SHARED_LENGTH) return true
  }
  return false
}

export const hasSharedList = ({ publications, map }: SubscribeReply): boolean =>
  isSharedList(publications) || (map !== null && isSharedList(map.state))

/** Encodes each list once, for as long as it is in use. */
export const encodedOnce = (
  encode: (publications: readonly SentPublication[]) => Uint8Array
): ((publications: readonly SentPublication[]) => Buffer) => {
  const encoded = new WeakMap<readonly SentPublication[], Buffer>()
  return (publications) => {
    const known = encoded.get(publications)
    if (known !== undefined) return known
    const bytes = encode(publications)
    // Not in the buffer pool of Node.js, of which it would keep a block of up to 64 KiB.
    const copy = Buffer.allocUnsafeSlow(bytes.length)
    copy.set(bytes)
    encoded.set(publications, copy)
    return copy
  }
}
