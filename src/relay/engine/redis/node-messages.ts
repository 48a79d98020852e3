// Messages between relay nodes. Relays of different versions may share a Redis, so names of fields and kinds do not change.

export type NodeMessage =
  /** Heartbeat. A new node asks for the heartbeats of the others. */
  | { readonly kind: 'here'; readonly node: string; readonly isNew: boolean }
  /** The node has shut down. */
  | { readonly kind: 'gone'; readonly node: string }
  /** A survey or a command. */
  | {
      readonly kind: 'ask'
      readonly id: number
      readonly from: string
      /** Null for all nodes. */
      readonly to: string | null
      readonly question: string
      readonly params: unknown
    }
  | { readonly kind: 'answer'; readonly id: number; readonly node: string; readonly answer: unknown }
  | { readonly kind: 'failed'; readonly id: number; readonly node: string }

export type RequestMessage = Extract<NodeMessage, { readonly kind: 'ask' }>
export type ReplyMessage = Extract<NodeMessage, { readonly kind: 'answer' | 'failed' }>

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string' && value !== ''
const isId: Check = (value) => Number.isSafeInteger(value)
const isPresent: Check = (value) => value !== undefined

const FIELDS: ReadonlyMap<unknown, Readonly<Record<string, Check>>> = new Map(
  Object.entries({
    here: { node: isText, isNew: (value) => typeof value === 'boolean' },
    gone: { node: isText },
    ask: {
      id: isId,
      from: isText,
      to: (value) => value === null || isText(value),
      question: isText,
      params: isPresent
    },
    answer: { id: isId, node: isText, answer: isPresent },
    failed: { id: isId, node: isText }
  } satisfies Record<NodeMessage['kind'], Record<string, Check>>)
)

const isNodeMessage = (message: Readonly<Record<string, unknown>>): message is NodeMessage & typeof message => {
  const fields = FIELDS.get(message.kind)
  return fields !== undefined && Object.entries(fields).every(([name, isValid]) => isValid(message[name]))
}

/** Null for a malformed message. */
export const parseNodeMessage = (text: string): NodeMessage | null => {
  try {
    const message: Readonly<Record<string, unknown>> = Object(JSON.parse(text))
    return isNodeMessage(message) ? message : null
  } catch {
    return null
  }
}

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
