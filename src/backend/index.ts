// The package entry `gatehouse-backend`: what a Node.js backend needs to publish to the relay, to let clients connect, and to
// answer the relay's event proxies and webhooks.

export {
  createPublisher,
  type Publisher,
  type PublisherCounts,
  type PublisherOptions,
  type PublishOptions,
  type PublishOutcome
} from '../shared/publisher.js'
export { EventDisconnect, EventError, type EventHandlerOptions, eventHandler } from './event-handler.js'
export type * from './event-types.js'
export { type NegotiateOptions, type NegotiateResponse, negotiate } from './negotiate.js'
export { nodeListener } from './node-listener.js'
export { verifyWebhook, type WebhookHeaders } from './verify-webhook.js'
