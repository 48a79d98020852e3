import type { Figures } from '../relay/admin/contract.js'
import { niceMax } from '../ui/axis.js'
import { bytesText } from '../ui/format.js'

/** One line of a chart. */
export interface Line {
  readonly key: keyof Figures
  readonly label: string
}

export interface FigureKind {
  readonly title: string
  readonly about: string
  readonly lines: readonly Line[]
  readonly text: (value: number) => string
  /** A short form for the axis. */
  readonly short: (value: number) => string
  /** The upper end of the axis. */
  readonly top: (value: number) => number
}

const WHOLE = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 0 })
const TENTHS = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 1 })

export const countText = (value: number): string => WHOLE.format(value)
/** Small rates have one decimal. */
export const rateText = (value: number): string => (value < 10 ? TENTHS : WHOLE).format(value)
const COMPACT = new Intl.NumberFormat('en-GB', { notation: 'compact', maximumFractionDigits: 1 })

/** Rounds up to a multiple of a binary unit. */
const bytesTop = (value: number): number => {
  const unit = 1024 ** Math.floor(Math.log(Math.max(value, 1024)) / Math.log(1024))
  return niceMax(Math.max(value, 1024) / unit) * unit
}

/** How the values of a chart are written and scaled. */
type Scale = Pick<FigureKind, 'text' | 'short' | 'top'>
const COUNTS: Scale = { text: countText, short: COMPACT.format, top: (value) => niceMax(Math.max(value, 2)) }
const RATES: Scale = { ...COUNTS, text: rateText }
const BYTES: Scale = { text: bytesText, short: (value) => bytesText(value).replace('.0', ''), top: bytesTop }
const MILLISECONDS: Scale = {
  text: (value) => `${rateText(value)} ms`,
  short: (value) => `${COMPACT.format(value)} ms`,
  top: (value) => niceMax(Math.max(value, 10))
}

const figure = (title: string, about: string, key: keyof Figures, scale: Scale): FigureKind => ({
  title,
  about,
  lines: [{ key, label: '' }],
  ...scale
})

export const FIGURE_KINDS: readonly FigureKind[] = [
  figure('Connections', 'connected clients', 'connections', COUNTS),
  figure('Subscriptions', 'subscriptions of all clients', 'subscriptions', COUNTS),
  figure('Publishes per second', 'publications received', 'publishesPerSecond', RATES),
  figure('Deliveries per second', 'messages sent to clients', 'deliveriesPerSecond', RATES),
  figure('Bytes per second', 'sent to clients', 'bytesPerSecond', {
    ...BYTES,
    text: (value) => `${bytesText(Math.round(value))}/s`
  }),
  figure('Queue depth', 'bytes queued for clients', 'queuedBytes', BYTES),
  {
    title: 'Slow clients',
    about: 'with queued data · with merged data (dashed)',
    lines: [
      { key: 'slowReaders', label: 'slow' },
      { key: 'conflatedReaders', label: 'conflated' }
    ],
    ...COUNTS
  },
  figure('Event-loop delay', 'maximum per second', 'eventLoopDelayMs', MILLISECONDS),
  figure('Memory', 'resident memory of the process', 'memoryBytes', BYTES)
]
