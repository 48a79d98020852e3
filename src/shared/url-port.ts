const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443, 'ws:': 80, 'wss:': 443 }

/** The port of an HTTP or WebSocket URL, also if it is the default of its scheme, which `URL` omits. */
export const portOf = ({ port, protocol }: Pick<URL, 'port' | 'protocol'>): number =>
  port === '' ? (DEFAULT_PORTS[protocol] ?? 0) : Number(port)
