/** Why the relay ends a subscription. From 2500 on the client subscribes again by itself. */
export interface Unsubscribe {
  readonly code: number
  readonly reason: string
}

export const SERVER_UNSUBSCRIBE: Unsubscribe = { code: 2000, reason: 'server unsubscribe' }
export const LOST_POSITION: Unsubscribe = { code: 2500, reason: 'insufficient state' }
export const EXPIRED_SUBSCRIPTION: Unsubscribe = { code: 2501, reason: 'subscription expired' }
