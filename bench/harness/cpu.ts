import { readdirSync, readFileSync } from 'node:fs'

/** CPU time of a process and its children, in microseconds. */
export const cpuMicroseconds = (pid: number): number =>
  [pid, ...childrenOf(pid)].reduce((sum, each) => sum + ownMicroseconds(each), 0)

const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)

/** CPU time of all threads. The kernel counts in nanoseconds. */
const ownMicroseconds = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`)
    .map((thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]))
    .reduce((sum, nanoseconds) => sum + nanoseconds / 1000, 0)

/** Resident memory of a process, in MiB. */
export const residentMebibytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

/** The highest resident memory of a process so far, in MiB. */
export const peakMebibytes = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
