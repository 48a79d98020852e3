/** One Redis server, as it is dialled. */
export interface RedisAddress {
  readonly host: string
  readonly port: number
  readonly username: string
  readonly password: string
  readonly db: number
  readonly isTls: boolean
}

const DEFAULT_PORT = 6379

/** Of a comma list whose entries are known to be addresses. */
export const redisAddresses = (list: string): readonly RedisAddress[] =>
  list
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .map((entry) => {
      const { protocol, hostname, port, username, password, pathname } = new URL(entry)
      return {
        // An IPv6 address stands in brackets in a URL, and nowhere else.
        host: hostname.replace(/^\[(.*)\]$/, '$1') || '127.0.0.1',
        port: port === '' ? DEFAULT_PORT : Number(port),
        username: decodeURIComponent(username),
        password: decodeURIComponent(password),
        db: Number(pathname.slice(1)),
        isTls: protocol === 'rediss:'
      }
    })

/**
 * What ends the names of all messages there. Redis keeps databases apart for keys only: a message reaches the subscribers of
 * all of them.
 */
export const topicEnd = ({ db }: RedisAddress): string => (db === 0 ? '' : `/${db}`)

/** Without what is secret: for logs, and for telling servers apart. */
export const addressName = ({ host, port, db }: RedisAddress): string => `${host}:${port}${db === 0 ? '' : `/${db}`}`
