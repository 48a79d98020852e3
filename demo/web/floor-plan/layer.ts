import type { Pen } from './pen.js'
import type { Rect, Size } from './plan.js'
import type { View } from './viewport.js'

export interface Drawing {
  /** Its unit is a CSS pixel of the panel; its origin is the top left corner of the panel. */
  readonly pen: Pen
  readonly view: View
  readonly panel: Size
  /** The colour of a token of `src/ui/tokens.css` in the current theme. */
  readonly colour: (token: `--${string}`) => string
}

/** A part of the plan. A layer does not change: new data is a new layer. It leaves `globalAlpha` at 1. */
export interface Layer {
  /** `ground` is drawn when the view or a layer changes. `markers` is drawn below the markers, whenever one moves. */
  readonly surface: 'ground' | 'markers'
  draw(drawing: Drawing): void
  /** The rectangles in pixels that names of markers must not cover. */
  covered?(view: View, panel: Size): readonly Rect[]
}

/** What the user can switch off. */
export const LAYERS = {
  zones: 'Zones',
  receivers: 'Receivers',
  ambient: 'Ambient devices',
  names: 'Names'
} as const

export type LayerChoice = Readonly<Record<keyof typeof LAYERS, boolean>>
