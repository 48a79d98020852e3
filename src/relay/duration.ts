const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const

/** As in `300s`, `1h30m`, `1.5s`; a bare `0` is written too. */
export const DURATION_PATTERN = '^(?:0|(?:\\d{1,9}(?:\\.\\d{1,3})?(?:ms|s|m|h))+)$'

const PART = /(\d+(?:\.\d+)?)(ms|s|m|h)/g

/** Milliseconds of a text that matches `DURATION_PATTERN`. */
export const durationMs = (text: string): number =>
  Math.round(
    [...text.matchAll(PART)].reduce(
      (sum, [, count, unit]) => sum + Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS],
      0
    )
  )
