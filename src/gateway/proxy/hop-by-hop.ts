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

const NO_NAMES: readonly string[] = []

/** Headers that the `Connection` header names belong to the connection too. */
export const namesInConnection = (connection: string | undefined): readonly string[] =>
  connection === undefined || connection === 'keep-alive' || connection === 'close'
    ? NO_NAMES
    : connection.split(',').map((name) => name.trim().toLowerCase())
