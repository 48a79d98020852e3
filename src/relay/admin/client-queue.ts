import type { Client } from '../core/session/client.js'

/** Whether publications are being merged for the client because it is behind. */
export const hasBacklog = ({ subscriptions }: Client): boolean => {
  for (const { backlog } of subscriptions.values()) if (backlog !== null) return true
  return false
}

/** Bytes that wait for the client, merged publications included. */
export const waitingBytes = ({ outbox, isBehind, subscriptions }: Client): number => {
  let bytes = outbox.unsentBytes
  if (!isBehind) return bytes
  for (const { backlog } of subscriptions.values()) bytes += backlog?.bytes ?? 0
  return bytes
}
