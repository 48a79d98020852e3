import { api } from '../services.js'
import type { ListResponse, Named, Transmitter } from '../types.js'
import { useLoaded } from './useLoad.js'

const MAX_OPTIONS = 500

/** The choices of a form that assigns a transmitter: none, the current one, and those that nobody carries. */
export const useTransmitterOptions = () => {
  const free = useLoaded((options) =>
    api.transmitters.unassigned<ListResponse<Transmitter>>({ query: { limit: MAX_OPTIONS }, ...options })
  )
  const optionOf = ({ id, name, batteryLevel }: Transmitter): Named => {
    const battery = typeof batteryLevel === 'number' ? `, battery ${Math.round(batteryLevel)} %` : ''
    return { id, name: `${name ?? id}${battery}` }
  }
  return {
    free,
    /** Without the choice of none. */
    freeOptions: (): readonly Named[] => (free.data.value ?? []).map(optionOf),
    optionsFor: (current: string | null | undefined): readonly Named[] => [
      { id: '', name: 'None' },
      ...(current ? [{ id: current, name: `${current} (current)` }] : []),
      ...(free.data.value ?? []).map(optionOf)
    ]
  }
}
