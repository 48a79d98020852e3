import {
  type ExpiredKeys,
  type HistoryRange,
  MAP_EXPIRY_INTERVAL_MS,
  type MapChanged,
  type MapRemoval,
  type MapSuppression,
  type Maps,
  type MapWrite,
  type RetainedPage,
  type StatePage,
  type StateRange
} from '../core/engine.js'
import type { MapMode, MapStorageOptions } from '../core/options.js'
import type { Publication } from '../core/publication.js'
import type { MemoryMaps } from '../engine/memory-maps.js'
import { readInSteps } from '../engine/whole-state.js'
import type { FrameReader, FrameWriter } from './frames.js'
import { type IpcConnection, NO_FIELDS } from './ipc.js'
import {
  readHistoryPage,
  readHistoryRange,
  readList,
  readPosition,
  readPublication,
  readTrace,
  writeHistoryPage,
  writeHistoryRange,
  writeList,
  writePosition,
  writePublication
} from './messages.js'

const ignoreReply = (): void => undefined

/** A worker's side: the primary has the maps of all workers. */
export class WorkerMaps implements Maps {
  readonly #primary: IpcConnection

  constructor(primary: IpcConnection) {
    this.#primary = primary
  }

  write(channel: string, write: MapWrite, options: MapStorageOptions): Promise<MapChanged | 'full'> {
    return this.#primary.request(
      'writeMap',
      (out) => {
        writeMapWrite(out.text(channel), write)
        writeOptions(out, options)
      },
      readChanged
    )
  }

  async removeKey(channel: string, removal: MapRemoval, options: MapStorageOptions): Promise<MapChanged> {
    return this.#primary.request(
      'removeMapKey',
      (out) => writeOptions(out.text(channel).text(removal.key).text(removal.idempotencyKey), options),
      readSuppressible
    )
  }

  readState(channel: string, range: StateRange, options: MapStorageOptions): Promise<StatePage> {
    return readInSteps(range, ({ after, limit }) =>
      this.#primary.request(
        'readMapState',
        (out) => writeOptions(out.text(channel).text(after).number(limit), options),
        (fields) => ({
          ...readPosition(fields),
          next: fields.text(),
          entries: readList(fields, readPublication)
        })
      )
    )
  }

  readKey(channel: string, key: string, options: MapStorageOptions): Promise<Publication | null> {
    return this.#primary.request(
      'readMapKey',
      (out) => writeOptions(out.text(channel).text(key), options),
      (fields) => (fields.byte() === 0 ? null : readPublication(fields))
    )
  }

  readStream(channel: string, range: HistoryRange, options: MapStorageOptions): Promise<RetainedPage> {
    return this.#primary.request(
      'readMapStream',
      (out) => {
        writeHistoryRange(out.text(channel), range)
        writeOptions(out, options)
      },
      readHistoryPage
    )
  }

  count(channel: string, options: MapStorageOptions): Promise<number> {
    return this.#primary.request(
      'countMapKeys',
      (out) => writeOptions(out.text(channel), options),
      (fields) => fields.number()
    )
  }

  clear(channel: string): Promise<void> {
    return this.#primary.request('clearMap', (out) => out.text(channel), ignoreReply)
  }

  /** The worker that calls first counts the keys in its metrics. */
  expire(): Promise<ExpiredKeys> {
    return this.#primary.request('expireMapKeys', NO_FIELDS, (fields) => ({
      keys: fields.number(),
      lagMs: fields.number()
    }))
  }
}

/** The primary's side. */
export class PrimaryMaps {
  readonly #maps: MemoryMaps
  readonly #monotonicMs: () => number
  #expiredAt = Number.NEGATIVE_INFINITY

  constructor(maps: MemoryMaps, monotonicMs: () => number) {
    this.#maps = maps
    this.#monotonicMs = monotonicMs
  }

  serve(ipc: IpcConnection): void {
    const maps = this.#maps
    ipc.onRequest({
      writeMap: (fields) => {
        const changed = maps.write(fields.text(), readMapWrite(fields), readOptions(fields))
        return (out) => writeChanged(out, changed)
      },
      removeMapKey: (fields) => {
        const [channel, key, idempotencyKey] = [fields.text(), fields.text(), fields.text()]
        const changed = maps.removeKey(channel, { key, idempotencyKey }, readOptions(fields))
        return (out) => writeSuppressible(out, changed)
      },
      clearMap: (fields) => {
        void maps.clear(fields.text())
        return NO_FIELDS
      },
      expireMapKeys: async () => {
        const { keys, lagMs } = await this.#expire()
        return (out) => out.number(keys).number(lagMs)
      }
    })
    this.#serveReads(ipc)
  }

  #serveReads(ipc: IpcConnection): void {
    const maps = this.#maps
    ipc.onRequest({
      readMapState: async (fields) => {
        const [channel, after, limit] = [fields.text(), fields.text(), fields.number()]
        const page = await maps.readState(channel, { after, limit }, readOptions(fields))
        return (out) => {
          writePosition(out, page)
          writeList(out.text(page.next), page.entries, writePublication)
        }
      },
      readMapKey: async (fields) => {
        const entry = await maps.readKey(fields.text(), fields.text(), readOptions(fields))
        return (out) => {
          if (entry === null) out.byte(0)
          else writePublication(out.byte(1), entry)
        }
      },
      readMapStream: async (fields) => {
        const page = await maps.readStream(fields.text(), readHistoryRange(fields), readOptions(fields))
        return (out) => writeHistoryPage(out, page)
      },
      countMapKeys: async (fields) => {
        const count = await maps.count(fields.text(), readOptions(fields))
        return (out) => out.number(count)
      }
    })
  }

  /** Every worker calls it at the same interval; once is enough. */
  async #expire(): Promise<ExpiredKeys> {
    const nowMs = this.#monotonicMs()
    if (nowMs - this.#expiredAt < MAP_EXPIRY_INTERVAL_MS / 2) return { keys: 0, lagMs: 0 }
    this.#expiredAt = nowMs
    return this.#maps.expire()
  }
}

const KEY_MODES = [null, 'if_new', 'if_exists'] as const

const writeMapWrite = (out: FrameWriter, write: MapWrite): void => {
  const { key, data, info, tags, delta, idempotencyKey, version, versionEpoch, keyMode, renews, trace } = write
  out
    .text(key)
    .payload(data)
    .textOrNull(info)
    .textOrNull(tags)
    .byte(delta ? 1 : 0)
    .text(idempotencyKey)
    .number(version)
    .text(versionEpoch)
    .byte(KEY_MODES.indexOf(keyMode))
    .byte(renews ? 1 : 0)
    .textOrNull(trace ?? null)
}

const readMapWrite = (fields: FrameReader): MapWrite => ({
  key: fields.text(),
  data: fields.payload(),
  info: fields.textOrNull(),
  tags: fields.textOrNull(),
  delta: fields.byte() === 1,
  idempotencyKey: fields.text(),
  version: fields.number(),
  versionEpoch: fields.text(),
  keyMode: KEY_MODES[fields.byte()] ?? null,
  renews: fields.byte() === 1,
  ...readTrace(fields)
})

const MODES = ['ephemeral', 'recoverable', 'persistent'] as const satisfies readonly MapMode[]

const writeOptions = (out: FrameWriter, options: MapStorageOptions): void => {
  out
    .byte(MODES.indexOf(options.mode))
    .number(options.keyTtlMs)
    .number(options.streamSize)
    .number(options.streamTtlMs)
    .number(options.metaTtlMs)
    .number(options.maxKeys)
    .byte(options.deliversPrevious ? 1 : 0)
}

const readOptions = (fields: FrameReader): MapStorageOptions => ({
  mode: MODES[fields.byte()] ?? 'ephemeral',
  keyTtlMs: fields.number(),
  streamSize: fields.number(),
  streamTtlMs: fields.number(),
  metaTtlMs: fields.number(),
  maxKeys: fields.number(),
  deliversPrevious: fields.byte() === 1
})

const SUPPRESSED_BY: readonly (MapSuppression | null)[] = [
  null,
  'idempotency',
  'version',
  'key_exists',
  'key_not_found'
]

const writeSuppressible = (out: FrameWriter, changed: MapChanged): void => {
  writePosition(out, changed)
  out.byte(SUPPRESSED_BY.indexOf(changed.suppressedBy))
}

const readSuppressible = (fields: FrameReader): MapChanged => ({
  ...readPosition(fields),
  suppressedBy: SUPPRESSED_BY[fields.byte()] ?? null
})

const writeChanged = (out: FrameWriter, changed: MapChanged | 'full'): void => {
  if (changed === 'full') out.byte(0)
  else writeSuppressible(out.byte(1), changed)
}

const readChanged = (fields: FrameReader): MapChanged | 'full' =>
  fields.byte() === 0 ? 'full' : readSuppressible(fields)
