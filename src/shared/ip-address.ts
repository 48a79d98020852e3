import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

/**
 * The IP address in a text of a socket or proxy, or null. Proxies add ports and brackets, dual-stack sockets show IPv4
 * clients as `::ffff:1.2.3.4`, and link-local addresses have a zone.
 */
export const normalAddress = (text: string): string | null => {
  // The most common case.
  if (isIPv4(text)) return text
  let address = text.trim()
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(address)
  if (bracketed?.[1] !== undefined) address = bracketed[1]
  else if (/^[\d.]+:\d{1,5}$/.test(address)) address = address.slice(0, address.indexOf(':'))

  const zone = address.indexOf('%')
  if (zone !== -1) address = address.slice(0, zone)

  const mapped = /^::ffff:([\d.]+)$/i.exec(address)
  if (mapped?.[1] !== undefined) address = mapped[1]
  return isIP(address) === 0 ? null : address.toLowerCase()
}

/** `10.0.0.0/8`, `::1`, `192.0.2.7` or the word `loopback`. */
export const isAddressRange = (text: string): boolean => text === 'loopback' || parseRange(text) !== null

const LOOPBACK = ['127.0.0.0/8', '::1/128']

interface Range {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

const parseRange = (text: string): Range | null => {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const family = isIPv4(address) ? 'ipv4' : isIPv6(address) ? 'ipv6' : null
  if (family === null) return null
  const longest = family === 'ipv4' ? 32 : 128
  const prefix = bits === undefined ? longest : Number(bits)
  return prefix > longest ? null : { address, prefix, family }
}

/** A set of addresses given as ranges, each of which passed `isAddressRange`. */
export class AddressSet {
  readonly #ranges = new BlockList()

  constructor(ranges: readonly string[]) {
    for (const text of ranges.flatMap((range) => (range === 'loopback' ? LOOPBACK : [range]))) {
      const range = parseRange(text)
      if (range === null) throw new TypeError(`not an address range: ${text}`)
      this.#ranges.addSubnet(range.address, range.prefix, range.family)
    }
  }

  /** A closed socket has no address and is not in the set. */
  has(text: string | undefined): boolean {
    const address = normalAddress(text ?? '')
    return address !== null && this.#ranges.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
  }
}
