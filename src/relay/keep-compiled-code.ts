import { setFlagsFromString } from 'node:v8'

const TEN_MINUTES_MS = 600_000

/**
 * To be called before anything else is loaded. After eight quiet seconds V8 collects thrice to give memory back, and what it had
 * compiled for connections goes with the last of them. Whoever comes back then, often all at once, is served by code that is
 * interpreted and compiled anew: three times the CPU time for the first thousands of them.
 */
export const keepCompiledCode = (): void => setFlagsFromString(`--gc-memory-reducer-start-delay-ms=${TEN_MINUTES_MS}`)
