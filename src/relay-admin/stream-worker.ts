import type { Check, FigureSample } from '../relay/admin/contract.js'
import { addressOf } from './api.js'
import { type LiveEvent, LiveStream, type StreamState } from './live-stream.js'
import { withHistory, withSample } from './samples.js'

// A shared worker: all tabs of a browser share one stream, because HTTP/1.1 allows six connections to one host. The
// browser ends the worker with the last tab.

export type TabMessage =
  | { readonly kind: 'open' | 'select'; readonly channel: string }
  | { readonly kind: 'close' }
  /** The tab holds this lock until it is closed or crashes. */
  | { readonly kind: 'lock'; readonly name: string }

export type WorkerMessage =
  | { readonly kind: 'event'; readonly event: LiveEvent }
  | { readonly kind: 'state'; readonly state: StreamState }
  | { readonly kind: 'rejected' }

/** The open tabs, each with the channel that it shows; '' for none. The last one was changed last. */
const tabs = new Map<MessagePort, string>()
let samples: readonly FigureSample[] = []
let checks: readonly Check[] | null = null
let state: StreamState = 'connecting'

const sendToAll = (message: WorkerMessage): void => {
  for (const port of tabs.keys()) port.postMessage(message)
}

const setState = (next: StreamState): void => {
  if (next === state) return
  state = next
  sendToAll({ kind: 'state', state })
}

const receive = (event: LiveEvent): void => {
  if (event.name === 'history') samples = withHistory(samples, event.data)
  if (event.name === 'sample') samples = withSample(samples, event.data)
  if (event.name === 'checks') checks = event.data
  const message: WorkerMessage = { kind: 'event', event }
  for (const [port, channel] of tabs)
    if (event.name !== 'publication' || event.data.channel === channel) port.postMessage(message)
}

/** The limit of the relay. Beyond it, the tabs that were changed first receive no publications. */
const MAX_CHANNELS = 50
/** The same for the length of a URL, which the relay and proxies limit. */
const MAX_ADDRESS_LENGTH = 6000

const streamAddress = (channels: readonly string[]): string => {
  const address = addressOf('live', { channel: channels })
  return address.length > MAX_ADDRESS_LENGTH ? streamAddress(channels.slice(1)) : address
}

const stream = new LiveStream(streamAddress, {
  onEvent: receive,
  onState: setState,
  onRejected: () => sendToAll({ kind: 'rejected' })
})

/** A new tab first opens the stream, then selects a channel; a tab that changes its channel sends two messages. */
const UPDATE_DELAY_MS = 20
let updateTimer: ReturnType<typeof setTimeout> | undefined

/** Adapts the stream to the open tabs. */
const update = (): void => {
  clearTimeout(updateTimer)
  updateTimer = setTimeout(() => {
    if (tabs.size === 0) return
    const channels = new Set(tabs.values())
    channels.delete('')
    stream.selectChannels([...channels].slice(-MAX_CHANNELS))
    if (!stream.isOpen) stream.open()
  }, UPDATE_DELAY_MS)
}

/** Sends the events that a new tab has missed. */
const sendCurrent = (port: MessagePort): void => {
  const send = (message: WorkerMessage): void => port.postMessage(message)
  send({ kind: 'state', state })
  if (samples.length > 0) send({ kind: 'event', event: { name: 'history', data: samples } })
  if (checks !== null) send({ kind: 'event', event: { name: 'checks', data: checks } })
}

const remove = (port: MessagePort): void => {
  tabs.delete(port)
  update()
  if (tabs.size > 0) return
  stream.close()
  samples = []
  checks = null
  state = 'connecting'
}

const handle = (port: MessagePort, message: TabMessage): void => {
  if (message.kind === 'lock') {
    // Granted when the tab no longer exists.
    void navigator.locks.request(message.name, () => {
      remove(port)
      port.close()
    })
  } else if (message.kind === 'close') remove(port)
  else {
    if (tabs.get(port) !== message.channel) tabs.delete(port)
    tabs.set(port, message.channel)
    update()
    if (message.kind === 'open') sendCurrent(port)
  }
}

const HEARTBEAT_MS = 2000

addEventListener('connect', (event) => {
  // The types of the page do not include this event; it has one port.
  const [port] = (event as MessageEvent).ports
  if (port === undefined) return
  port.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => handle(port, data))
  port.start()
})
setInterval(() => sendToAll({ kind: 'state', state }), HEARTBEAT_MS)
