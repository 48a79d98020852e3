import { computed, type Ref } from 'vue'
import type { Drawing } from '../floor-plan/draw-markers.js'

/** The colour tokens as a canvas needs them, because it does not read style sheets; read again whenever `changed` changes. */
export const usePalette = (changed: Ref<unknown>) =>
  computed((): Drawing['colour'] => {
    void changed.value
    const known = new Map<string, string>()
    return (token) => {
      const colour = known.get(token) ?? resolve(token)
      known.set(token, colour)
      return colour
    }
  })

/** A computed `color` is resolved for the current theme; the value of a custom property is not. */
const resolve = (token: string): string => {
  const probe = document.createElement('span')
  probe.style.color = `var(${token})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
