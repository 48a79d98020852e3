// These belong to one connection, not to the message on it.
export const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings'
]

const NO_NAMES: ReadonlySet<string> = new Set()

/** Headers that the `Connection` header names belong to the connection too. A set, because a client may name thousands. */
export const namesInConnection = (connection: string | undefined): ReadonlySet<string> =>
  connection === undefined || connection === 'keep-alive' || connection === 'close'
    ? NO_NAMES
    : new Set(connection.toLowerCase().split(',').map(trimmed))

const trimmed = (name: string): string => name.trim()
