import type { ChildProcess } from 'node:child_process'

/** A connection on its way to a worker, as Node's cluster passes it on. */
interface Handle {
  close(): void
}

interface ClusterMessage {
  readonly act?: string
  readonly seq?: number
  readonly ack?: number
}

/**
 * Node's cluster takes a connection and hands it to a worker in turn; one that the worker had not yet taken when it was
 * killed stays open in the primary for ever, and its client waits for ever. Here such connections are closed, so that
 * their clients come again. It looks at messages that are internal to Node; should they change, nothing but this ceases.
 */
export const closeUntaken = (worker: ChildProcess): void => {
  const onTheirWay = new Map<number, Handle>()
  const send = worker.send.bind(worker) as (message: ClusterMessage, handle?: Handle, ...rest: unknown[]) => boolean
  worker.send = ((message: ClusterMessage, handle?: Handle, ...rest: unknown[]): boolean => {
    if (message.act === 'newconn' && message.seq !== undefined && handle) onTheirWay.set(message.seq, handle)
    return send(message, handle, ...rest)
  }) as typeof worker.send
  worker.on('internalMessage', ({ ack }: ClusterMessage) => {
    if (ack !== undefined) onTheirWay.delete(ack)
  })
  worker.once('exit', () => {
    for (const handle of onTheirWay.values()) handle.close()
  })
}
