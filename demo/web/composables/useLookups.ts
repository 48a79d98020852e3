import type { CallOptions } from 'gatehouse-client'
import { computed } from 'vue'
import { api } from '../services.js'
import type { DataResponse, ListResponse, Named, SiteContext, Transmitter } from '../types.js'
import { type Load, useLoaded } from './useLoad.js'

type Request = (options: CallOptions) => Promise<DataResponse<readonly Named[]>>

const all = (list: <Result>(options: CallOptions) => Promise<Result>, options: CallOptions) =>
  list<ListResponse<Named>>({ ...options, query: { limit: 1000 } })

const transmitterOption = ({ id, name, batteryLevel }: Transmitter): Named => ({
  id,
  name: `${name ?? id}${typeof batteryLevel === 'number' ? `, battery ${Math.round(batteryLevel)} %` : ''}`
})

/** Choices that come from other resources. */
const LOOKUPS = {
  buildings: (options) => all(api.buildings.list, options),
  departments: (options) => all(api.mgmt.departments.list, options),
  roles: (options) => api.users.roles(options),
  floors: async (options) => {
    const { data } = await api.context.read<DataResponse<SiteContext>>(options)
    const floors = data.buildings.flatMap((building) =>
      building.floors.map(({ id, name }) => ({ id, name: `${building.name} – ${name}` }))
    )
    return { data: floors }
  },
  /** Those that nobody carries. */
  transmitters: async (options) => {
    const { data } = await api.transmitters.unassigned<ListResponse<Transmitter>>({ ...options, query: { limit: 500 } })
    return { data: data.map(transmitterOption) }
  }
} satisfies Readonly<Record<string, Request>>
export type LookupName = keyof typeof LOOKUPS

export const isLookup = (name: unknown): name is LookupName => typeof name === 'string' && name in LOOKUPS

/** Loads the choices with these names. */
export const useLookups = (names: Iterable<LookupName>) => {
  const loads = new Map([...new Set(names)].map((name) => [name, useLoaded<readonly Named[]>(LOOKUPS[name])]))
  return {
    loads: [...loads.values()] as readonly Load[],
    choices: computed(() => new Map([...loads].map(([name, { data }]) => [name, data.value ?? []])))
  }
}
