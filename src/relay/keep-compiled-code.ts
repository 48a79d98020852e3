import { setFlagsFromString } from 'node:v8'

const TEN_MINUTES_MS = 600_000

/**
 * To be called before the program does anything else. After eight quiet seconds V8 collects thrice to give memory back, and with the last
 * connections it throws away what it had compiled for connections. Whoever comes back then, often all at once, is served by
 * code that is interpreted and compiled anew: two to three times the CPU time for the first thousands of them.
 */
export const keepCompiledCode = (): void => setFlagsFromString(`--gc-memory-reducer-start-delay-ms=${TEN_MINUTES_MS}`)
