/** Whether a page of this origin may connect to this host. Both as the headers say it. */
export type OriginCheck = (origin: string | undefined, host: string | undefined) => boolean

/**
 * Browsers always say where a page is from; programs need not. Without a list only pages of the relay's own host may
 * connect. Entries are lower-case origins, `https://*.example.com` for one or more labels, or `*` for all.
 */
export const originCheck = (allowed: readonly string[]): OriginCheck => {
  if (allowed.includes('*')) return () => true
  const exact = new Set(allowed)
  const patterns = allowed.filter((entry) => entry.includes('*')).map(patternTest)
  return (origin, host) => {
    if (origin === undefined) return true
    const lower = origin.toLowerCase()
    if (allowed.length === 0) return isSameHost(lower, host)
    return exact.has(lower) || patterns.some((test) => test(lower))
  }
}

const LABELS = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/

const patternTest = (pattern: string): ((origin: string) => boolean) => {
  const [before = '', after = ''] = pattern.split('*')
  return (origin) =>
    origin.length > before.length + after.length &&
    origin.startsWith(before) &&
    origin.endsWith(after) &&
    LABELS.test(origin.slice(before.length, origin.length - after.length))
}

const isSameHost = (origin: string, host: string | undefined): boolean => {
  if (host === undefined || !/^https?:\/\//.test(origin) || !URL.canParse(origin)) return false
  const url = new URL(origin)
  // The Host header may name the scheme's own port; an origin never does.
  return url.host === host.toLowerCase() || `${url.host}:${url.protocol === 'https:' ? 443 : 80}` === host.toLowerCase()
}
