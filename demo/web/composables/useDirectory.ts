import { shallowRef } from 'vue'
import { api } from '../services.js'
import type { ListAnswer, Transmitter } from '../types.js'
import { messageOf } from './useLoad.js'

export interface Carrier {
  readonly name: string
  readonly kind: 'person' | 'thing'
}

const AGAIN_AFTER_MS = 10_000
const carriers = shallowRef<ReadonlyMap<string, Carrier>>(new Map())
let askedAtMs = Number.NEGATIVE_INFINITY

const load = async (): Promise<void> => {
  askedAtMs = performance.now()
  try {
    const { data } = await api.transmitters.list<ListAnswer<Transmitter>>({ query: { limit: 1000 } })
    carriers.value = new Map(data.map((transmitter) => [transmitter.id, carrierOf(transmitter)]))
  } catch (error) {
    // Nobody has a name then; they still move.
    messageOf(error)
  }
}

const carrierOf = ({ id, name, carriedBy, entity_type }: Transmitter): Carrier => ({
  name: carriedBy ?? name ?? id,
  kind: entity_type === 'asset' ? 'thing' : 'person'
})

/** Who carries which transmitter. Somebody unknown is asked about, though not all the time. */
export const useDirectory = () => ({
  carrierOf: (transmitterId: string): Carrier => {
    const known = carriers.value.get(transmitterId)
    if (known === undefined && performance.now() - askedAtMs > AGAIN_AFTER_MS) void load()
    return known ?? { name: transmitterId, kind: 'person' }
  }
})
