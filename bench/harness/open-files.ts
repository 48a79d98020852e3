import { readFileSync } from 'node:fs'

/** Files, listeners and pipes of a process besides its connections. */
const SPARE_FILES = 200

/** Connections that a process may have. Node.js raises its limit to the hard limit, which `ulimit -Hn` or `prlimit` changes. */
export const connectionsAllowed = (): number => {
  const [, hard = '0'] = /Max open files\s+\S+\s+(\S+)/.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return (hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard)) - SPARE_FILES
}
