export type Order = 'asc' | 'desc'

export const isOrder = (value: unknown): value is Order => value === 'asc' || value === 'desc'

/** Selecting the sorted column again reverses the order. */
export const nextOrder = (current: Order, isSorted: boolean, firstOrder: Order): Order => {
  if (!isSorted) return firstOrder
  return current === 'asc' ? 'desc' : 'asc'
}
