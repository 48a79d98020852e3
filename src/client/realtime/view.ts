/** A rectangle of the plane, from (x, y) to (x + w, y + h). */
export interface View {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
}

/** The view that a subscription has asked for, and the one that the relay has granted: null for everything. */
export interface CurrentView {
  readonly asked: View | null
  readonly granted: View | null
}

export const WHOLE: CurrentView = { asked: null, granted: null }

/** Share of its size by which a view is enlarged on each side, so that a small movement needs no new subscription. */
const MARGIN = 0.5
/** A view that is this many times as large as needed is replaced by a smaller one. */
const MAX_EXCESS = 8

const withMargin = ({ x, y, w, h }: View): View => ({
  x: x - w * MARGIN,
  y: y - h * MARGIN,
  w: w * (1 + 2 * MARGIN),
  h: h * (1 + 2 * MARGIN)
})

const contains = (outer: View, inner: View): boolean =>
  inner.x >= outer.x &&
  inner.y >= outer.y &&
  inner.x + inner.w <= outer.x + outer.w &&
  inner.y + inner.h <= outer.y + outer.h

const area = ({ w, h }: View): number => w * h

/** The view to ask for so that the wanted one is covered; undefined if the current one is good enough. */
export const viewToAsk = (wanted: View | null, { asked, granted }: CurrentView): View | null | undefined => {
  if (wanted === null) return asked === null ? undefined : null
  const next = withMargin(wanted)
  if (asked === null) return next
  // A view that was not granted was too large, and everything is received.
  const isCovered = granted === null || contains(granted, wanted)
  const isExcessive = area(granted ?? asked) > MAX_EXCESS * area(next)
  return isCovered && !isExcessive ? undefined : next
}

/** The data of a subscribe command. */
export const viewData = (view: View | null): { readonly view: View } | undefined =>
  view === null ? undefined : { view }

/** The view in the data of a subscribe reply; null if the relay sends everything. */
export const grantedView = (data: unknown): View | null => {
  if (typeof data !== 'object' || data === null || !('view' in data)) return null
  const { view } = data
  if (typeof view !== 'object' || view === null) return null
  const { x, y, w, h } = view as Readonly<Record<string, unknown>>
  return typeof x === 'number' && typeof y === 'number' && typeof w === 'number' && typeof h === 'number'
    ? { x, y, w, h }
    : null
}

export const isInView = ({ x, y }: { readonly x: number; readonly y: number }, view: View): boolean =>
  x >= view.x && x < view.x + view.w && y >= view.y && y < view.y + view.h
