import type { RelayConfig } from '../config/config.js'
import { channelStateRules, optionsOf } from './channel-state-rules.js'
import { type WebhookOptions, WebhookSender, type WebhookSenderDependencies } from './webhook-sender.js'

const MAX_EVENTS = 100
const MAX_BODY_BYTES = 256 * 1024
/** An event without its channel, at most. */
const EVENT_BYTES = 128
/** A character of a channel in JSON, at most: `\u0000`. */
const MAX_ESCAPED_BYTES = 6

/** The part of the configuration that webhooks depend on. */
export type WebhookConfig = Pick<RelayConfig, 'channels' | 'vacatedDelayMs' | 'proxies'>

/** Notifies backends about channels that become occupied or vacated: one sender for each proxy that a namespace names. */
export class Webhooks {
  readonly #dependencies: WebhookSenderDependencies
  readonly #senders = new Map<string, WebhookSender>()

  /** Events are sent once it is configured. */
  constructor(dependencies: WebhookSenderDependencies) {
    this.#dependencies = dependencies
    dependencies.states.onDue((proxy) => this.#senders.get(proxy)?.wake())
  }

  configure(config: WebhookConfig): void {
    const rules = channelStateRules(config)
    this.#dependencies.states.configure(rules)
    const proxies = rules?.proxies ?? new Set<string>()
    for (const [proxy, sender] of this.#senders) {
      if (proxies.has(proxy)) continue
      this.#senders.delete(proxy)
      void sender.close()
    }
    for (const proxy of proxies) {
      const options = webhookOptions(proxy, config)
      const sender = this.#senders.get(proxy)
      if (sender === undefined) this.#senders.set(proxy, new WebhookSender(proxy, options, this.#dependencies))
      else sender.options = options
    }
  }

  /** Number of events that wait, by proxy. */
  async countWaiting(): Promise<ReadonlyMap<string, number>> {
    const proxies = [...this.#senders.keys()]
    const counts = await Promise.all(proxies.map((proxy) => this.#dependencies.states.countDue(proxy)))
    return new Map(proxies.map((proxy, index) => [proxy, counts[index] ?? 0]))
  }

  /** Resolves when no request is under way any more. */
  async close(): Promise<void> {
    await Promise.all([...this.#senders.values()].map((sender) => sender.close()))
  }
}

const webhookOptions = (proxy: string, { channels, proxies }: WebhookConfig): WebhookOptions => ({
  timeoutMs: proxies.events.state.get(proxy)?.timeoutMs ?? 0,
  batchSize: batchSize(channels.maxLength),
  isSelected: ({ channel, type }) => optionsOf(channel, channels)?.stateEvents.includes(type) ?? false
})

/** Few enough events that even the longest channel names do not exceed the maximum size of a body. */
const batchSize = (maxChannelBytes: number): number =>
  Math.max(1, Math.min(MAX_EVENTS, Math.floor(MAX_BODY_BYTES / (maxChannelBytes * MAX_ESCAPED_BYTES + EVENT_BYTES))))
