/** The V8 flags that each program runs with. node accepts them on its command line only; see decisions 6, 10 and 11. */
export const V8_FLAGS = {
  gateway: ['--no-allocation-site-pretenuring'],
  relay: ['--gc-memory-reducer-start-delay-ms=600000', '--max-semi-space-size=16']
} as const satisfies Record<string, readonly string[]>

export type ProgramName = keyof typeof V8_FLAGS
