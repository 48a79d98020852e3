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
  /** The same in a place as narrow as an axis. */
  readonly short: (value: number) => string
  /** Where the axis ends. */
  readonly top: (value: number) => number
}

const WHOLE = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 0 })
const TENTHS = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 1 })

export const countText = (value: number): string => WHOLE.format(value)
/** Tenths matter where little happens, and only there. */
export const rateText = (value: number): string => (value < 10 ? TENTHS : WHOLE).format(value)
const COMPACT = new Intl.NumberFormat('en-GB', { notation: 'compact', maximumFractionDigits: 1 })
const counted = { short: COMPACT.format, top: (value: number) => niceMax(Math.max(value, 2)) }

/** 512 MB is a round number of bytes, 500,000,000 is not. */
const bytesTop = (value: number): number => {
  const unit = 1024 ** Math.floor(Math.log(Math.max(value, 1024)) / Math.log(1024))
  return niceMax(Math.max(value, 1024) / unit) * unit
}
const inBytes = { short: (value: number) => bytesText(value).replace('.0', ''), top: bytesTop }

const millisecondsText = (value: number): string => `${rateText(value)} ms`

export const FIGURE_KINDS: readonly FigureKind[] = [
  {
    title: 'Connections',
    about: 'clients that are connected',
    lines: [{ key: 'connections', label: '' }],
    text: countText,
    ...counted
  },
  {
    title: 'Subscriptions',
    about: 'clients on channels, each channel counted',
    lines: [{ key: 'subscriptions', label: '' }],
    text: countText,
    ...counted
  },
  {
    title: 'Publishes per second',
    about: 'messages that came in',
    lines: [{ key: 'publishesPerSecond', label: '' }],
    text: rateText,
    ...counted
  },
  {
    title: 'Deliveries per second',
    about: 'messages that went out to clients',
    lines: [{ key: 'deliveriesPerSecond', label: '' }],
    text: rateText,
    ...counted
  },
  {
    title: 'Bytes per second',
    about: 'written to clients',
    lines: [{ key: 'bytesPerSecond', label: '' }],
    text: (value) => `${bytesText(Math.round(value))}/s`,
    ...inBytes
  },
  {
    title: 'Queue depth',
    about: 'bytes that wait for readers',
    lines: [{ key: 'queuedBytes', label: '' }],
    text: bytesText,
    ...inBytes
  },
  {
    title: 'Readers behind',
    about: 'slow · conflated (dashed): theirs are merged',
    lines: [
      { key: 'slowReaders', label: 'slow' },
      { key: 'conflatedReaders', label: 'conflated' }
    ],
    text: countText,
    ...counted
  },
  {
    title: 'Event-loop delay',
    about: 'how late timers are',
    lines: [{ key: 'eventLoopDelayMs', label: '' }],
    text: millisecondsText,
    short: (value) => `${COMPACT.format(value)} ms`,
    top: (value) => niceMax(Math.max(value, 10))
  },
  {
    title: 'Memory',
    about: 'of the process',
    lines: [{ key: 'memoryBytes', label: '' }],
    text: bytesText,
    ...inBytes
  }
]
