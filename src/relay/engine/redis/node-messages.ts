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

export const nodeMessageJson = (message: NodeMessage): string => JSON.stringify(message)

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
  if (kind === 'request') return requestFromJson(json)
  if (!isText(node)) return null
  if (kind === 'leave') return { kind, node }
  if (kind === 'heartbeat') return typeof json.isNew === 'boolean' ? { kind, node, isNew: json.isNew } : null
  if (!isId(id)) return null
  if (kind === 'failure') return { kind, id, node }
  return kind === 'response' && json.result !== undefined ? { kind, id, node, result: json.result } : null
}

const requestFromJson = ({ id, from, to, survey, params }: Readonly<Record<string, unknown>>): NodeMessage | null =>
  isId(id) && isText(from) && (to === null || isText(to)) && isText(survey) && params !== undefined
    ? { kind: 'request', id, from, to, survey, params }
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
