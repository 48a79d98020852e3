import { readdirSync, readFileSync } from 'node:fs'

/** CPU time of a process so far, all its threads together, in microseconds. The kernel counts it in nanoseconds. */
export const cpuMicroseconds = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`)
    .map((thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]))
    .reduce((sum, nanoseconds) => sum + nanoseconds / 1000, 0)

/** Memory that a process holds, in MiB. */
export const residentMebibytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
