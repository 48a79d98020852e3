import { Listeners } from '../listeners.js'

/**
 * A value that changes over time, for the bindings to frameworks. It works while it has listeners: the first one opens it,
 * the last one closes it, and it starts again with its initial state. Every change is a new object.
 */
export interface Store<State> {
  /** Also the state on a server, where nothing opens the store. */
  readonly initial: State
  getState(): State
  /** Returns a function that removes the listener. Throws what `open` throws. */
  subscribe(listener: () => void): () => void
}

/** Replaces some fields of the state. Has no effect after the store was closed. */
export type SetState<State> = (change: Partial<State>) => void

/** `open` returns a function that releases everything it has acquired. */
export const createStore = <State extends object>(
  initial: State,
  open: (setState: SetState<State>) => () => void
): Store<State> => {
  const listeners = new Listeners<undefined>()
  let state = initial
  let count = 0
  let close = (): void => undefined

  const start = (): void => {
    let isOpen = true
    const release = open((change) => {
      if (!isOpen) return
      state = { ...state, ...change }
      listeners.emit(undefined)
    })
    close = () => {
      isOpen = false
      release()
      state = initial
    }
  }

  return {
    initial,
    getState: () => state,
    subscribe: (listener) => {
      if (count === 0) start()
      count += 1
      const remove = listeners.add(listener)
      let isRemoved = false
      return () => {
        if (isRemoved) return
        isRemoved = true
        remove()
        count -= 1
        if (count === 0) close()
      }
    }
  }
}
