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
const counted = { short: COMPACT.format, top: (value: number) => niceMax(Math.max(value, 2)) }

/** Rounds up to a multiple of a binary unit. */
const bytesTop = (value: number): number => {
  const unit = 1024 ** Math.floor(Math.log(Math.max(value, 1024)) / Math.log(1024))
  return niceMax(Math.max(value, 1024) / unit) * unit
}
const inBytes = { short: (value: number) => bytesText(value).replace('.0', ''), top: bytesTop }

const millisecondsText = (value: number): string => `${rateText(value)} ms`

export const FIGURE_KINDS: readonly FigureKind[] = [
  {
    title: 'Connections',
    about: 'connected clients',
    lines: [{ key: 'connections', label: '' }],
    text: countText,
    ...counted
  },
  {
    title: 'Subscriptions',
    about: 'subscriptions of all clients',
    lines: [{ key: 'subscriptions', label: '' }],
    text: countText,
    ...counted
  },
  {
    title: 'Publishes per second',
    about: 'publications received',
    lines: [{ key: 'publishesPerSecond', label: '' }],
    text: rateText,
    ...counted
  },
  {
    title: 'Deliveries per second',
    about: 'messages sent to clients',
    lines: [{ key: 'deliveriesPerSecond', label: '' }],
    text: rateText,
    ...counted
  },
  {
    title: 'Bytes per second',
    about: 'sent to clients',
    lines: [{ key: 'bytesPerSecond', label: '' }],
    text: (value) => `${bytesText(Math.round(value))}/s`,
    ...inBytes
  },
  {
    title: 'Queue depth',
    about: 'bytes queued for clients',
    lines: [{ key: 'queuedBytes', label: '' }],
    text: bytesText,
    ...inBytes
  },
  {
    title: 'Slow clients',
    about: 'with queued data · with merged data (dashed)',
    lines: [
      { key: 'slowReaders', label: 'slow' },
      { key: 'conflatedReaders', label: 'conflated' }
    ],
    text: countText,
    ...counted
  },
  {
    title: 'Event-loop delay',
    about: 'maximum per second',
    lines: [{ key: 'eventLoopDelayMs', label: '' }],
    text: millisecondsText,
    short: (value) => `${COMPACT.format(value)} ms`,
    top: (value) => niceMax(Math.max(value, 10))
  },
  {
    title: 'Memory',
    about: 'resident memory of the process',
    lines: [{ key: 'memoryBytes', label: '' }],
    text: bytesText,
    ...inBytes
  }
]
