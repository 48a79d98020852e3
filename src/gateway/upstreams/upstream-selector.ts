import type { IncomingMessage } from 'node:http'
import { pathOf } from '../../shared/http-upgrade.js'
import { HOST } from '../http/client-request.js'
import { GATEWAY_PREFIXES } from './gateway-prefixes.js'

/** A row as far as requests select it. */
export interface Selectable {
  /** Null for every host. */
  readonly hosts: readonly string[] | null
  readonly paths: readonly string[]
}

/**
 * Selects the row of a request: rows for its host come before rows for every host, and among them the longest path wins. The
 * gateway's own paths have none. It reads the raw request, because the router asks before any hook runs.
 */
export class UpstreamSelector<Row extends Selectable> {
  readonly #anyHost = new PrefixTable<Row>()
  readonly #byHost = new Map<string, PrefixTable<Row>>()
  readonly #isTrustedProxy: (address: string) => boolean

  constructor(rows: readonly Row[], isTrustedProxy: (address: string) => boolean) {
    this.#isTrustedProxy = isTrustedProxy
    for (const row of rows) {
      for (const path of row.paths) {
        if (row.hosts === null) this.#anyHost.add(path, row)
        for (const host of row.hosts ?? []) this.#table(host.toLowerCase()).add(path, row)
      }
    }
  }

  /** Null for paths of the gateway itself, and for those of `BACKEND_URL`. */
  select(request: IncomingMessage): Row | null {
    const path = pathOf(request)
    if (this.#byHost.size > 0) {
      const row = this.#byHost.get(this.#hostOf(request))?.find(path)
      if (row !== undefined) return row
    }
    return this.#anyHost.find(path) ?? null
  }

  #table(host: string): PrefixTable<Row> {
    const table = this.#byHost.get(host) ?? new PrefixTable<Row>()
    this.#byHost.set(host, table)
    return table
  }

  /** The same host as `browserHost`, without its port. */
  #hostOf({ headers, socket }: IncomingMessage): string {
    // Node joins several lines of a header with commas.
    const forwarded = String(headers['x-forwarded-host'] ?? '')
      .split(',')
      .at(-1)
      ?.trim()
    const isForwarded = forwarded && HOST.test(forwarded) && this.#isTrustedProxy(socket.remoteAddress ?? '')
    const host = (isForwarded ? forwarded : (headers.host ?? '')).toLowerCase()
    return host.replace(/\.?(?::\d*)?$/, '')
  }
}

/** Rows by path prefix. */
class PrefixTable<Row> {
  /** Null for the gateway's own prefixes. */
  readonly #rows = new Map<string, Row | null>(GATEWAY_PREFIXES.map((prefix) => [prefix, null]))
  /** The number of segments of the longest prefix. */
  #depth = Math.max(...GATEWAY_PREFIXES.map(segmentCount))

  add(prefix: string, row: Row): void {
    this.#rows.set(prefix, row)
    this.#depth = Math.max(this.#depth, segmentCount(prefix))
  }

  /** The row with the longest prefix; undefined if there is none. */
  find(path: string): Row | null | undefined {
    const found = this.#longest(path, 0, this.#depth)
    return found === undefined ? this.#rows.get('/') : found
  }

  #longest(path: string, start: number, depth: number): Row | null | undefined {
    const slash = path.indexOf('/', start + 1)
    if (slash === -1) return this.#rows.get(path)
    const longer = depth > 1 ? this.#longest(path, slash, depth - 1) : undefined
    return longer === undefined ? this.#rows.get(path.slice(0, slash)) : longer
  }
}

const segmentCount = (prefix: string): number => prefix.split('/').length - 1
