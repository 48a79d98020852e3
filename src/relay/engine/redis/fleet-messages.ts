/** What nodes tell each other. */
export type FleetMessage =
  /** It is there. Who is new wants to hear from the others at once. */
  | { readonly kind: 'here'; readonly node: string; readonly isNew: boolean }
  | { readonly kind: 'gone'; readonly node: string }
  | {
      readonly kind: 'ask'
      readonly id: number
      readonly from: string
      /** Null for everybody. */
      readonly to: string | null
      readonly question: string
      readonly params: unknown
    }
  | { readonly kind: 'answer'; readonly id: number; readonly node: string; readonly answer: unknown }
  | { readonly kind: 'failed'; readonly id: number; readonly node: string }

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string' && value !== ''
const isId: Check = (value) => Number.isSafeInteger(value)
const isThere: Check = (value) => value !== undefined

const SHAPES: Readonly<Record<FleetMessage['kind'], Readonly<Record<string, Check>>>> = {
  here: { node: isText, isNew: (value) => typeof value === 'boolean' },
  gone: { node: isText },
  ask: { id: isId, from: isText, to: (value) => value === null || isText(value), question: isText, params: isThere },
  answer: { id: isId, node: isText, answer: isThere },
  failed: { id: isId, node: isText }
}

/** Null for what no node of ours has sent. */
export const readFleetMessage = (text: string): FleetMessage | null => {
  let message: Record<string, unknown>
  try {
    message = Object(JSON.parse(text))
  } catch {
    return null
  }
  const { kind } = message
  if (typeof kind !== 'string' || !Object.hasOwn(SHAPES, kind)) return null
  const shape = Object.entries(SHAPES[kind as FleetMessage['kind']])
  return shape.every(([name, isRight]) => isRight(message[name])) ? (message as unknown as FleetMessage) : null
}
