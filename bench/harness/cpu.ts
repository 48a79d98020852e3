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

/** Resident memory of a process and its children, in MiB. */
export const totalMebibytes = (pid: number): number =>
  [pid, ...childrenOf(pid)].reduce((sum, each) => sum + residentMebibytes(each), 0)

/** Memory of all TCP socket buffers of the machine, in MiB. */
export const kernelSocketMebibytes = (): number =>
  (Number(/^TCP: .* mem (\d+)/m.exec(readFileSync('/proc/net/sockstat', 'utf8'))?.[1] ?? 0) * PAGE_BYTES) / 2 ** 20

const PAGE_BYTES = 4096

/** The highest resident memory of a process so far, in MiB. */
export const peakMebibytes = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
