const MAX_PIXELS = 80
const STEPS = [5, 2, 1]

export interface ScaleBar {
  readonly metres: number
  readonly pixels: number
}

/** The longest bar of 1, 2 or 5 times a power of ten metres that is not too wide. `scale` is in pixels per metre. */
export const scaleBarOf = (scale: number): ScaleBar => {
  const power = 10 ** Math.floor(Math.log10(MAX_PIXELS / scale))
  const metres = power * (STEPS.find((step) => step * power * scale <= MAX_PIXELS) ?? 1)
  return { metres, pixels: metres * scale }
}

/** Such as `5 m`, `20 cm` or `2 km`. */
export const lengthText = (metres: number): string => {
  if (metres >= 1000) return `${metres / 1000} km`
  return metres < 1 ? `${Math.round(metres * 100)} cm` : `${metres} m`
}
