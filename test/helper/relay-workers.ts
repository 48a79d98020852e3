import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Test } from 'tap'
import type { NodeInfo } from '../../src/relay/core/node-requests.js'
import type { Child } from './child.js'
import { send } from './http.js'
import { startProgram } from './program.js'
import { API_KEY, type ConfigFile, HMAC_SECRET } from './relay-rules.js'
import { required } from './required.js'

export interface RelayOfWorkers {
  readonly program: Child
  readonly url: string
  readonly port: number
  /** The process ids of the workers. */
  workers(): readonly [number, ...number[]]
  /** The result of a publish API call. Each call has its own connection, so that all workers receive calls. */
  api<Result = Record<string, unknown>>(method: string, request: unknown): Promise<Result>
  publish(channel: string, data: unknown): Promise<{ readonly offset: number; readonly epoch: string }>
  nodes(): Promise<readonly NodeInfo[]>
  configure(file: ConfigFile | string): void
}

/** The built relay with this number of workers. */
export const startWorkers = (
  t: Test,
  count: number,
  file: ConfigFile,
  env: Readonly<Record<string, string>> = {}
): Promise<RelayOfWorkers> =>
  startWorkersOf(t, count, file, env, (t, variables) => startProgram(t, 'dist/src/relay/main.js', variables))

/** The same with short timeouts of the primary for its workers. */
export const startWorkersWithShortTimeouts = (t: Test, count: number, file: ConfigFile): Promise<RelayOfWorkers> =>
  startWorkersOf(t, count, file, {}, (t, variables) => {
    const program = join(t.testdirName, 'relay.mjs')
    writeFileSync(program, SHORT_TIMEOUTS_PROGRAM)
    return startProgram(t, program, variables)
  })

const SHORT_TIMEOUTS_PROGRAM = `
import { acceptHangups } from ${JSON.stringify(resolve('dist/src/shared/hangup.js'))}
import { start } from ${JSON.stringify(resolve('dist/src/relay/start.js'))}
acceptHangups()
await start(process.env, { reloadMs: 1_000, hungMs: 12_000 })
`

const startWorkersOf = async (
  t: Test,
  count: number,
  file: ConfigFile,
  env: Readonly<Record<string, string>>,
  start: (t: Test, env: Readonly<Record<string, string>>) => Promise<Child>
): Promise<RelayOfWorkers> => {
  const config = join(t.testdir(), 'relay.json')
  const configure = (next: ConfigFile | string): void =>
    writeFileSync(config, typeof next === 'string' ? next : JSON.stringify(next))
  configure(file)
  const program = await start(t, {
    RELAY_PORT: '0',
    RELAY_WORKERS: String(count),
    RELAY_CONFIG: config,
    REALTIME_HMAC_SECRET: HMAC_SECRET,
    REALTIME_API_KEY: API_KEY,
    ...env
  })
  const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
  const api: RelayOfWorkers['api'] = async (method, request) => {
    const response = await send(url, `/api/${method}`, {
      method: 'POST',
      body: JSON.stringify(request),
      headers: { 'x-api-key': API_KEY }
    })
    return JSON.parse(response.body).result
  }
  return {
    program,
    url,
    port: Number(new URL(url).port),
    workers: () => {
      const children = readFileSync(`/proc/${program.pid}/task/${program.pid}/children`, 'utf8')
      const [first, ...rest] = (children.match(/\d+/g) ?? []).map(Number)
      return [required(first), ...rest]
    },
    api,
    publish: (channel, data) => api('publish', { channel, data }),
    nodes: async () => (await api<{ nodes: NodeInfo[] }>('info', {})).nodes,
    configure
  }
}

/** Connects clients until each worker has at least one of them. Their distribution depends on the system. */
export const atEachWorker = async <Client>(
  { nodes }: RelayOfWorkers,
  connect: () => Promise<Client>
): Promise<readonly Client[]> => {
  const counts = async (): Promise<ReadonlyMap<string, number>> =>
    new Map((await nodes()).map(({ uid, num_clients }) => [uid, num_clients]))
  const before = await counts()
  const clients: Client[] = []
  do {
    // One for each worker: if the workers take turns, the request for the counts must not always get the same one's turn.
    for (let count = 0; count < before.size; count++) clients.push(await connect())
  } while ([...(await counts())].some(([uid, count]) => count <= (before.get(uid) ?? 0)))
  return clients
}

/** Suspends a process until the returned function is called or the test ends. A suspended worker does not end with its relay. */
export const freeze = (t: Test, pid: number): (() => void) => {
  const resume = (): void => {
    try {
      process.kill(pid, 'SIGCONT')
    } catch {
      // The process has ended.
    }
  }
  process.kill(pid, 'SIGSTOP')
  t.teardown(resume)
  return resume
}
