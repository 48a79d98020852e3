/** A message between the relay nodes of a cluster. */
export type NodeMessage =
  /** A new node requests the heartbeats of the others. */
  | { readonly kind: 'heartbeat'; readonly node: string; readonly isNew: boolean }
  /** The node has shut down. */
  | { readonly kind: 'leave'; readonly node: string }
  /** A survey or a command. */
  | {
      readonly kind: 'request'
      readonly id: number
      readonly from: string
      /** Null for all nodes. */
      readonly to: string | null
      readonly survey: string
      readonly params: unknown
    }
  | { readonly kind: 'response'; readonly id: number; readonly node: string; readonly result: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly node: string }

export type RequestMessage = Extract<NodeMessage, { readonly kind: 'request' }>
export type ReplyMessage = Extract<NodeMessage, { readonly kind: 'response' | 'failure' }>

// The JSON of a message has other names than its type. Relays of different versions share a Redis during an upgrade, so the
// names in JSON do not change.

export const nodeMessageJson = (message: NodeMessage): string => JSON.stringify(toJson(message))

const toJson = (message: NodeMessage): object => {
  switch (message.kind) {
    case 'heartbeat':
      return { ...message, kind: 'here' }
    case 'leave':
      return { ...message, kind: 'gone' }
    case 'request': {
      const { id, from, to, survey, params } = message
      return { kind: 'ask', id, from, to, question: survey, params }
    }
    case 'response':
      return { kind: 'answer', id: message.id, node: message.node, answer: message.result }
    case 'failure':
      return { ...message, kind: 'failed' }
  }
}

/** Null for a malformed message. */
export const parseNodeMessage = (text: string): NodeMessage | null => {
  try {
    return fromJson(Object(JSON.parse(text)))
  } catch {
    return null
  }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const isId = (value: unknown): value is number => Number.isSafeInteger(value)

const fromJson = (json: Readonly<Record<string, unknown>>): NodeMessage | null => {
  const { kind, id, node } = json
  if (kind === 'ask') return requestFromJson(json)
  if (!isText(node)) return null
  if (kind === 'gone') return { kind: 'leave', node }
  if (kind === 'here') return typeof json.isNew === 'boolean' ? { kind: 'heartbeat', node, isNew: json.isNew } : null
  if (!isId(id)) return null
  if (kind === 'failed') return { kind: 'failure', id, node }
  return kind === 'answer' && json.answer !== undefined ? { kind: 'response', id, node, result: json.answer } : null
}

const requestFromJson = ({ id, from, to, question, params }: Readonly<Record<string, unknown>>): NodeMessage | null =>
  isId(id) && isText(from) && (to === null || isText(to)) && isText(question) && params !== undefined
    ? { kind: 'request', id, from, to, survey: question, params }
    : null

/** The other nodes with a recent heartbeat. A node without one for the time of its lease has left. */
export class NodeLeases {
  readonly #leaseMs: number
  readonly #nowMs: () => number
  readonly #renewedAt = new Map<string, number>()

  constructor(leaseMs: number, nowMs: () => number) {
    this.#leaseMs = leaseMs
    this.#nowMs = nowMs
  }

  get nodes(): readonly string[] {
    const oldest = this.#nowMs() - this.#leaseMs
    for (const [node, renewedAt] of this.#renewedAt) if (renewedAt < oldest) this.#renewedAt.delete(node)
    return [...this.#renewedAt.keys()]
  }

  renew(node: string): void {
    this.#renewedAt.set(node, this.#nowMs())
  }

  remove(node: string): void {
    this.#renewedAt.delete(node)
  }
}
