import type { ChannelStateEvent, ChannelStates, TakenStateEvents } from '../core/engine.js'
import type { FrameReader, FrameWriter } from './frames.js'
import type { IpcConnection } from './ipc.js'
import { readList, writeList } from './messages.js'

/** A worker's side: the primary has the states of all channels. */
export class WorkerChannelStates implements ChannelStates {
  readonly #primary: IpcConnection
  #listener: (proxy: string) => void = () => undefined

  constructor(primary: IpcConnection) {
    this.#primary = primary
    primary.onMessage({ stateEventsDue: (fields) => this.#listener(fields.text()) })
  }

  /** The primary has the same configuration. */
  configure(): void {}

  take(proxy: string, limit: number, leaseMs: number): Promise<TakenStateEvents> {
    return this.#primary.request(
      'takeStateEvents',
      (out) => out.text(proxy).number(limit).number(leaseMs),
      (fields) => ({ nextMs: fields.number(), events: readList(fields, readEvent) })
    )
  }

  async confirm(proxy: string, events: readonly ChannelStateEvent[]): Promise<void> {
    this.#primary.send('confirmStateEvents', (out) => writeList(out.text(proxy), events, writeEvent))
  }

  async release(proxy: string, events: readonly ChannelStateEvent[]): Promise<void> {
    this.#primary.send('releaseStateEvents', (out) => writeList(out.text(proxy), events, writeEvent))
  }

  countDue(proxy: string): Promise<number> {
    return this.#primary.request(
      'countStateEvents',
      (out) => out.text(proxy),
      (fields) => fields.number()
    )
  }

  onDue(listener: (proxy: string) => void): void {
    this.#listener = listener
  }
}

/** The primary's side. All workers may take events; one of them is notified, and the others look from time to time. */
export class PrimaryChannelStates {
  readonly #states: ChannelStates
  /** In the order of their first request. */
  readonly #workers = new Set<IpcConnection>()

  constructor(states: ChannelStates) {
    this.#states = states
    states.onDue((proxy) => {
      const [worker] = this.#workers
      worker?.send('stateEventsDue', (out) => out.text(proxy))
    })
  }

  /** Serves a worker until its IPC connection closes. The events that it has taken are due again then. */
  serve(ipc: IpcConnection): void {
    /** By id. */
    const taken = new Map<string, { readonly proxy: string; readonly event: ChannelStateEvent }>()
    const finish = (action: 'confirm' | 'release', fields: FrameReader): void => {
      const [proxy, events] = [fields.text(), readList(fields, readEvent)]
      for (const { id } of events) taken.delete(id)
      void this.#states[action](proxy, events)
    }
    ipc.onRequest({
      takeStateEvents: async (fields) => {
        this.#workers.add(ipc)
        const proxy = fields.text()
        const { events, nextMs } = await this.#states.take(proxy, fields.number(), fields.number())
        for (const event of events) taken.set(event.id, { proxy, event })
        return (out) => writeList(out.number(nextMs), events, writeEvent)
      },
      countStateEvents: async (fields) => {
        const count = await this.#states.countDue(fields.text())
        return (out) => out.number(count)
      }
    })
    ipc.onMessage({
      confirmStateEvents: (fields) => finish('confirm', fields),
      releaseStateEvents: (fields) => finish('release', fields)
    })
    void ipc.closed.then(() => {
      this.#workers.delete(ipc)
      for (const { proxy, event } of taken.values()) void this.#states.release(proxy, [event])
    })
  }
}

const writeEvent = (out: FrameWriter, { id, channel, type, timeMs }: ChannelStateEvent): void => {
  out
    .text(id)
    .text(channel)
    .byte(type === 'occupied' ? 1 : 0)
    .number(timeMs)
}

const readEvent = (fields: FrameReader): ChannelStateEvent => ({
  id: fields.text(),
  channel: fields.text(),
  type: fields.byte() === 1 ? 'occupied' : 'vacated',
  timeMs: fields.number()
})
