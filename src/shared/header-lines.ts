import type { IncomingMessage, Server } from 'node:http'

/** Clients and proxies send about 30. */
const MAX_HEADER_LINES = 100

/**
 * By default Node drops the header lines after the first 1,000 or 2,000 without an error. An attacker could then hide
 * the `X-Forwarded-For` that the proxy appends. With 0 Node keeps every line; `maxHeaderSize` still limits their bytes.
 */
export const keepAllHeaderLines = (server: Server): void => {
  server.maxHeadersCount = 0
}

/** Such a request is rejected with 431. Reliable only on a server that keeps all header lines. */
export const hasTooManyHeaderLines = ({ rawHeaders }: IncomingMessage): boolean =>
  rawHeaders.length > 2 * MAX_HEADER_LINES
