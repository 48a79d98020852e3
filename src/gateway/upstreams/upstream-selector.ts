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
  /** The last selection: the router and a hook ask for the same request, one after the other. */
  #last: { readonly request: IncomingMessage; readonly url: string | undefined; readonly row: Row | null } | null = null
  /** The last host, and its normal form. Most requests are for one host. */
  #lastHost: readonly [host: string, normal: string] = ['', '']

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
    if (this.#last?.request === request && this.#last.url === request.url) return this.#last.row
    const row = this.#find(request)
    this.#last = { request, url: request.url, row }
    return row
  }

  #find(request: IncomingMessage): Row | null {
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
    const forwarded = headers['x-forwarded-host']
    const isForwarded = forwarded !== undefined && this.#isTrustedProxy(socket.remoteAddress ?? '')
    const host = (isForwarded ? lastHost(forwarded) : null) ?? headers.host ?? ''
    if (host !== this.#lastHost[0]) this.#lastHost = [host, host.toLowerCase().replace(/\.?(?::\d*)?$/, '')]
    return this.#lastHost[1]
  }
}

/** Node joins several lines of a header with commas. Null for an invalid host. */
const lastHost = (header: string | readonly string[]): string | null => {
  const host = String(header).split(',').at(-1)?.trim()
  return host && HOST.test(host) ? host : null
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
