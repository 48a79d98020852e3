/** The address of one Redis server. */
export interface RedisAddress {
  readonly host: string
  readonly port: number
  readonly username: string
  readonly password: string
  readonly db: number
  readonly isTls: boolean
}

const DEFAULT_PORT = 6379

/** Parses a comma-separated list of Redis URLs that has been validated before. */
export const redisAddresses = (list: string): readonly RedisAddress[] =>
  list
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .map((entry) => {
      const { protocol, hostname, port, username, password, pathname } = new URL(entry)
      return {
        // An IPv6 address has brackets in a URL only.
        host: hostname.replace(/^\[(.*)\]$/, '$1') || '127.0.0.1',
        port: port === '' ? DEFAULT_PORT : Number(port),
        username: decodeURIComponent(username),
        password: decodeURIComponent(password),
        db: Number(pathname.slice(1)),
        isTls: protocol === 'rediss:'
      }
    })

/**
 * Suffix of every pub/sub topic on the server. Redis separates databases for keys only: a message reaches the subscribers of all
 * databases, so the database number is part of the topic.
 */
export const topicSuffix = ({ db }: RedisAddress): string => (db === 0 ? '' : `/${db}`)

/** Identifies a server in logs and in the hash ring. Contains no secrets. */
export const addressName = ({ host, port, db }: RedisAddress): string => `${host}:${port}${db === 0 ? '' : `/${db}`}`
