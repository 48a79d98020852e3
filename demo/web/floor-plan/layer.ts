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

/**
 * A part of the plan. A layer does not change: new data is a new layer, which is drawn at once. It sets every style that it
 * uses, and leaves `globalAlpha` at 1.
 */
export interface Layer {
  /**
   * `ground` is below all markers and drawn when the view or a layer changes. `markers` is drawn, below the markers, in each
   * frame in which a marker moves.
   */
  readonly surface: 'ground' | 'markers'
  draw(drawing: Drawing): void
  /** The rectangles in pixels that names of markers must not cover. */
  covered?(view: View, panel: Size): readonly Rect[]
}

/** The layers that the user can switch, in the order of their switches, and whether they are on at first. */
export const LAYERS = {
  zones: { title: 'Zones', isOn: true },
  receivers: { title: 'Receivers', isOn: true },
  ambient: { title: 'Ambient devices', isOn: true },
  names: { title: 'Names', isOn: true },
  heat: { title: 'Heat map', isOn: false },
  trails: { title: 'Trail', isOn: false }
} as const

export type LayerId = keyof typeof LAYERS
export type LayerChoice = Readonly<Record<LayerId, boolean>>

// The names of layers are the keys of the object above.
export const LAYER_IDS = Object.keys(LAYERS) as LayerId[]

/** The stored choice; layers that it does not contain are as at first. */
export const layerChoiceOf = (stored: string | null): LayerChoice => {
  const given = parsed(stored)
  const isOn = (id: LayerId): boolean => (typeof given[id] === 'boolean' ? given[id] : LAYERS[id].isOn)
  // One entry for each of the ids.
  return Object.fromEntries(LAYER_IDS.map((id) => [id, isOn(id)])) as Record<LayerId, boolean>
}

const parsed = (stored: string | null): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(stored ?? '{}')
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
