import { computed, ref, shallowRef } from 'vue'
import type { Check, CheckState, FigureSample, LiveEvents, LivePublication } from '../relay/admin/contract.js'
import { addressOf } from './api.js'
import { withHistory, withSample } from './samples.js'
import { useSession } from './useSession.js'

// The stream of server-sent events of this tab. It reconnects until it is closed.

const { loadSession, end, keepAlive } = useSession()

const samples = shallowRef<readonly FigureSample[]>([])
const checks = shallowRef<readonly Check[]>([])
const streamState = ref<'connecting' | 'live' | 'lost'>('connecting')
/** The latest sample. */
const sample = computed(() => samples.value.at(-1) ?? null)

/** Receives the events of the stream that concern the selected channel. */
interface ChannelFollower {
  readonly publication: (publication: LivePublication) => void
  /** Publications that the stream did not deliver, because there were too many. */
  readonly skipped: (count: number) => void
  /** A new stream begins; publications before it may be missing. */
  readonly started: () => void
}
let follower: ChannelFollower | null = null

const HANDLERS: { readonly [Name in keyof LiveEvents]: (data: LiveEvents[Name]) => void } = {
  history: (data) => {
    samples.value = withHistory(samples.value, data)
    follower?.started()
  },
  sample: (data) => {
    samples.value = withSample(samples.value, data)
    keepAlive()
  },
  checks: (data) => {
    checks.value = data
  },
  publication: (data) => follower?.publication(data),
  skipped: (data) => follower?.skipped(data),
  end
}

const LOST_AFTER_MS = 5000
const REOPEN_AFTER_SILENCE_MS = 12_000
const RETRY_AFTER_MS = 3000
const CHECK_INTERVAL_MS = 1000

/** Null while the stream is closed or paused. */
let source: EventSource | null = null
let isOpen = false
/** Its publications are received; '' for none. */
let selectedChannel = ''
let lastEventAtMs = 0
let reopenAtMs = Number.POSITIVE_INFINITY

const streamUrl = (): string => new URL(addressOf('live', { channel: selectedChannel }), location.href).href

/** A closed EventSource dispatches no more events. */
const disconnect = (): void => {
  source?.close()
  source = null
}

const connect = (): void => {
  disconnect()
  reopenAtMs = Number.POSITIVE_INFINITY
  lastEventAtMs = Date.now()
  const opened = new EventSource(streamUrl())
  source = opened
  for (const [name, handle] of Object.entries(HANDLERS)) {
    opened.addEventListener(name, ({ data }: MessageEvent<string>) => {
      lastEventAtMs = Date.now()
      streamState.value = 'live'
      // The relay sends the data of its contract with each name.
      handle(JSON.parse(data) as never)
    })
  }
  opened.addEventListener('error', () => {
    streamState.value = 'lost'
    if (opened.readyState !== EventSource.CLOSED) return
    // An EventSource gives no reason for a rejection; the session may have ended.
    void loadSession(true)
    reopenAtMs = Date.now() + RETRY_AFTER_MS
  })
}

/** Detects connections that broke without an error, such as after standby. */
setInterval(() => {
  if (source === null) return
  const silentMs = Date.now() - lastEventAtMs
  if (silentMs > LOST_AFTER_MS) streamState.value = 'lost'
  if (silentMs > REOPEN_AFTER_SILENCE_MS || Date.now() >= reopenAtMs) connect()
}, CHECK_INTERVAL_MS)

/**
 * A tab announces that it was hidden, and other hidden tabs pause their streams: HTTP/1.1 allows six connections to one host.
 * The tab that was hidden last keeps its stream.
 */
const hiddenTabs = new BroadcastChannel('relay-admin-hidden-tab')
hiddenTabs.addEventListener('message', () => {
  if (document.hidden) disconnect()
})
/** In a task of its own, which does not run in a tab that is closed. */
const announceHidden = (): void => {
  setTimeout(() => {
    if (isOpen && document.hidden) hiddenTabs.postMessage(null)
  })
}

const open = (): void => {
  isOpen = true
  streamState.value = 'connecting'
  announceHidden()
  // After the page of a channel has been rendered and has selected it.
  queueMicrotask(() => {
    if (isOpen) connect()
  })
}

document.addEventListener('visibilitychange', () => {
  if (isOpen && !document.hidden && source === null) open()
  announceHidden()
})

const selectChannel = (channel: string): void => {
  selectedChannel = channel
  // A navigation from one channel to another selects none in between.
  queueMicrotask(() => {
    if (source !== null && source.url !== streamUrl()) connect()
  })
}

const checksIn = (wanted: CheckState): readonly Check[] => checks.value.filter(({ state }) => state === wanted)

/** The data of the live stream. */
export const useLive = () => ({
  samples,
  sample,
  /** The clock of the relay. It stops while the relay is disconnected, so that ages do not grow without new data. */
  now: computed(() => sample.value?.time ?? Date.now()),
  /** The data is from before the connection was lost. */
  isStale: computed(() => streamState.value !== 'live' && (sample.value !== null || checks.value.length > 0)),
  checks,
  reds: computed(() => checksIn('red')),
  ambers: computed(() => checksIn('amber')),
  streamState,
  open,
  close: (): void => {
    isOpen = false
    disconnect()
    samples.value = []
    checks.value = []
  },
  /** Passes the events of the channel to the follower, until the returned function is called. */
  follow: (channel: string, events: ChannelFollower): (() => void) => {
    follower = events
    selectChannel(channel)
    return () => {
      follower = null
      selectChannel('')
    }
  }
})
