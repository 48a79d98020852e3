import type { EventBackend } from './event-backend.js'

export interface WebhookEvent {
  readonly channel: string
  readonly type: string
  readonly time_ms: number
  readonly id: string
}

/** The events in all requests of webhooks that a backend has received, also repeated ones. */
export const eventsOf = (backend: EventBackend, event = 'state'): readonly WebhookEvent[] =>
  backend.of(event).flatMap(({ body }) => (Array.isArray(body.events) ? body.events : []))
