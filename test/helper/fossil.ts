import { Centrifuge } from 'centrifuge'

interface Codec {
  applyDeltaIfNeeded(publication: { data: string; delta: boolean }, base: Uint8Array): { newPrevValue: Uint8Array }
}
// The property is private in the types.
const { _codec: codec } = new Centrifuge('ws://127.0.0.1:1') as unknown as { _codec: Codec }

/** The decoder of the official client, through its JSON codec: it reads deltas that are valid text. */
export const applyDelta = (base: Uint8Array, delta: string): Buffer =>
  Buffer.from(codec.applyDeltaIfNeeded({ data: delta, delta: true }, base).newPrevValue)
