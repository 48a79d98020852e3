const GROUPS = 8
const NETWORK_GROUPS = 4

/** Whose attempts are counted together: one household or office has a whole /64 of IPv6. */
export const networkOf = (address: string): string => {
  if (!address.includes(':')) return address
  const [before = '', after] = address.split('::')
  const groups = groupsOf(before)
  if (after !== undefined) {
    const tail = groupsOf(after)
    while (groups.length + tail.length < GROUPS) groups.push('0')
    groups.push(...tail)
  }
  const network = groups.slice(0, NETWORK_GROUPS).map((group) => group.replace(/^0+(?=.)/, ''))
  return `${network.join(':')}::/64`
}

const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'))
