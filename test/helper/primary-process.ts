import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { IpcConnection } from '../../src/relay/workers/ipc.js'
import type { Teardown } from './child.js'
import { required } from './required.js'

export type PrimaryCommand =
  | { readonly kind: 'advanceClock'; readonly ms: number }
  /** Replaces the engine by an empty one. */
  | { readonly kind: 'reset'; readonly surveyTimeoutMs: number }

/** File descriptors of the IPC connections in the primary process. */
export const IPC_FDS = [4, 5] as const

export interface PrimaryProcess {
  readonly child: ChildProcess
  /** This end of each stream. */
  readonly streams: readonly [Socket, Socket]
  readonly ipcConnections: readonly [IpcConnection, IpcConnection]
  command(command: PrimaryCommand): Promise<void>
}

/** A primary in a process of its own, with the test as its two workers. */
export const startPrimary = async (t: Teardown): Promise<PrimaryProcess> => {
  // As TypeScript or JavaScript, like this file.
  const child = fork(fileURLToPath(import.meta.url.replace('primary-process', 'primary-program')), {
    execArgv: process.execArgv,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc', 'pipe', 'pipe']
  })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'message')
  // Node types `stdio` for three descriptors of text streams; the further pipes of a child are sockets.
  const stdio = child.stdio as readonly unknown[] as readonly Socket[]
  const streams: PrimaryProcess['streams'] = [required(stdio[IPC_FDS[0]]), required(stdio[IPC_FDS[1]])]
  const command = async (message: PrimaryCommand): Promise<void> => {
    const done = once(child, 'message')
    child.send(message)
    await done
  }
  await command({ kind: 'reset', surveyTimeoutMs: 60_000 })
  const malformedFrame = (error: unknown): never => {
    throw error
  }
  const ipcConnections: PrimaryProcess['ipcConnections'] = [
    new IpcConnection(streams[0], malformedFrame),
    new IpcConnection(streams[1], malformedFrame)
  ]
  return { child, streams, ipcConnections, command }
}
