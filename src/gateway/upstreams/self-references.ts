import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { AddressSet, normalAddress } from '../../shared/ip-address.js'
import type { UpstreamRow } from './upstream-row.js'

interface ListenAddress {
  readonly host: string
  readonly port: number
}

/**
 * One line for each row whose address is that on which the gateway listens: it would forward requests to itself. A loop
 * through other machines is noticed when a request returns.
 */
export const selfReferences = async (
  rows: readonly UpstreamRow[],
  { host, port }: ListenAddress
): Promise<string[]> => {
  const samePort = rows.filter(({ url }) => port !== 0 && portOf(new URL(url)) === port)
  if (samePort.length === 0) return []
  const listening = await addressesOf(host)
  const own = new AddressSet(listening.flatMap((address) => (isAny(address) ? machineAddresses() : address)))
  const found = await Promise.all(
    samePort.map(async ({ name, url }) => {
      const addresses = await addressesOf(new URL(url).hostname.replace(/^\[(.*)\]$/, '$1'))
      const isOwn = addresses.some((address) => own.has(address) || isAny(address))
      return isOwn ? [`GATEWAY_UPSTREAMS url of ${name} must not be the address of the gateway itself`] : []
    })
  )
  return found.flat()
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

const portOf = ({ port, protocol }: URL): number => (port === '' ? (DEFAULT_PORTS[protocol] ?? 0) : Number(port))

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
