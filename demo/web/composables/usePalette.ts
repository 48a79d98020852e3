import { onScopeDispose, type ShallowRef, shallowRef } from 'vue'

export type Colour = (token: `--${string}`) => string

/** The colour tokens as a canvas needs them, because it does not read style sheets. Replaced when the theme changes. */
export const usePalette = (): Readonly<ShallowRef<Colour>> => {
  const palette = shallowRef(readPalette())
  const update = (): void => {
    palette.value = readPalette()
  }
  const systemTheme = matchMedia('(prefers-color-scheme: dark)')
  systemTheme.addEventListener('change', update)
  // The settings page sets the theme as an attribute.
  const observer = new MutationObserver(update)
  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  onScopeDispose(() => {
    systemTheme.removeEventListener('change', update)
    observer.disconnect()
  })
  return palette
}

/** A computed `color` is resolved for the current theme; the value of a custom property is not. */
const readPalette = (): Colour => {
  const known = new Map<string, string>()
  return (token) => {
    const colour = known.get(token) ?? resolve(token)
    known.set(token, colour)
    return colour
  }
}

const resolve = (token: string): string => {
  const probe = document.createElement('span')
  probe.style.color = `var(${token})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
