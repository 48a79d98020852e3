type Channels = readonly [number, number, number]

/** The channels of a computed colour such as `rgb(11, 107, 107)`; null for another notation. */
const channelsOf = (colour: string): Channels | null => {
  const [red, green, blue] = (/^rgba?\(([^)]+)\)$/.exec(colour)?.[1] ?? '').split(/[\s,]+/).map(Number)
  return red !== undefined && green !== undefined && blue !== undefined ? [red, green, blue] : null
}

/** A continuous scale of colours between these, from 0 to 1. Numbers outside have the colour of the nearest end. */
export const colourScale = (colours: readonly string[]): ((part: number) => string) => {
  const stops = colours.map(channelsOf)
  return (part) => {
    const at = Math.min(Math.max(part, 0), 1) * (colours.length - 1)
    const index = Math.min(Math.floor(at), colours.length - 2)
    const [low, high] = [stops[index], stops[index + 1]]
    if (!low || !high) return colours[Math.round(at)] ?? ''
    const channel = (which: 0 | 1 | 2): number => Math.round(low[which] + (high[which] - low[which]) * (at - index))
    return `rgb(${channel(0)}, ${channel(1)}, ${channel(2)})`
  }
}

/** The colours of the heat map, from short to long stays. */
export const HEAT_TOKENS = ['--heat-1', '--heat-2', '--heat-3', '--heat-4'] as const
/** The colours of a trail, from its start to the current position. */
export const TRAIL_TOKENS = ['--trail-1', '--trail-2', '--trail-3'] as const
