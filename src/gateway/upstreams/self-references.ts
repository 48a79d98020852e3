import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { AddressSet, normalAddress } from '../../shared/ip-address.js'
import type { FileValue } from '../../shared/settings-file.js'
import { portOf } from '../../shared/url-port.js'

interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** The part of the gateway's configuration that names backends and listen addresses. */
interface Addresses {
  readonly backend: { readonly url: string }
  readonly upstreamUrls: readonly FileValue[]
  readonly listen: ListenAddress
  readonly revocation: { readonly listen: ListenAddress } | null
}

/**
 * One line for each backend whose address is one on which the gateway listens: it would forward requests to itself. A loop
 * through other machines is noticed when a request of a row returns.
 */
export const selfReferences = async ({ backend, upstreamUrls, listen, revocation }: Addresses): Promise<string[]> => {
  const backends: readonly FileValue[] = [
    { value: backend.url, error: (message) => `BACKEND_URL ${message}` },
    ...upstreamUrls
  ]
  const own = [listen, ...(revocation === null ? [] : [revocation.listen])]
  const found = await Promise.all(
    backends.map(async ({ value, error }) => {
      const isOwn = (await Promise.all(own.map((each) => leadsTo(new URL(value), each)))).includes(true)
      return isOwn ? [error('must not be the address of the gateway itself')] : []
    })
  )
  return found.flat()
}

const leadsTo = async (url: URL, { host, port }: ListenAddress): Promise<boolean> => {
  if (port === 0 || portOf(url) !== port) return false
  const listening = await addressesOf(host)
  const own = new AddressSet(listening.flatMap((address) => (isAny(address) ? machineAddresses() : address)))
  const addresses = await addressesOf(url.hostname.replace(/^\[(.*)\]$/, '$1'))
  return addresses.some((address) => own.has(address) || isAny(address))
}

/** Empty for a name that cannot be resolved at present: the backend may be started later. */
const addressesOf = async (host: string): Promise<string[]> => {
  if (isIP(host) !== 0) return [normalAddress(host) ?? host]
  try {
    return (await lookup(host, { all: true })).map(({ address }) => normalAddress(address) ?? address)
  } catch {
    return []
  }
}

const isAny = (address: string): boolean => address === '0.0.0.0' || address === '::'

const machineAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.map(({ address }) => normalAddress(address) ?? address)
  )
