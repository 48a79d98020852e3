import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { IpcChannel } from '../../src/relay/workers/ipc.js'
import type { Teardown } from './child.js'

export type OwnerOrder =
  | { readonly kind: 'pass'; readonly ms: number }
  /** An owner that knows nothing yet takes the place of the one before. */
  | { readonly kind: 'fresh'; readonly patienceMs: number }

/** Where the owner finds the streams to two workers. */
export const OWNER_FD = [4, 5] as const

export interface OwnerProcess {
  readonly child: ChildProcess
  /** This end of each stream. */
  readonly streams: readonly Duplex[]
  readonly links: readonly IpcChannel[]
  order(order: OwnerOrder): Promise<void>
}

/** A real owner in a process of its own, with this test as its two workers. */
export const startOwner = async (t: Teardown): Promise<OwnerProcess> => {
  // Compiled or not, it is what this is.
  const child = fork(fileURLToPath(import.meta.url.replace('owner-process', 'owner-program')), {
    execArgv: process.execArgv,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc', 'pipe', 'pipe']
  })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'message')
  const streams = OWNER_FD.map((fd) => (child.stdio as readonly unknown[])[fd] as Duplex)
  const order = async (what: OwnerOrder): Promise<void> => {
    const done = once(child, 'message')
    child.send(what)
    await done
  }
  await order({ kind: 'fresh', patienceMs: 60_000 })
  const fault = (error: unknown): never => {
    throw error
  }
  return { child, streams, links: streams.map((stream) => new IpcChannel(stream, fault)), order }
}
