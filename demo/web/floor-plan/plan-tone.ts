// The lightness of uploaded plans, in RGBA pixels as those of a canvas.

/** Whether a picture is light on average, as drawings on white paper are. Transparent parts are paper too. */
export const isLight = (pixels: Uint8ClampedArray): boolean => {
  let dark = 0
  for (let index = 0; index < pixels.length; index += 4) {
    const [red = 0, green = 0, blue = 0, alpha = 0] = pixels.subarray(index, index + 4)
    dark += (1 - (Math.max(red, green, blue) + Math.min(red, green, blue)) / 510) * (alpha / 255)
  }
  return dark < pixels.length / 8
}

/** Exchanges light and dark, and keeps hue and transparency. */
export const invertLightness = (pixels: Uint8ClampedArray): void => {
  for (let index = 0; index < pixels.length; index += 4) {
    const [red, green, blue] = [pixels[index] ?? 0, pixels[index + 1] ?? 0, pixels[index + 2] ?? 0]
    const change = 255 - Math.max(red, green, blue) - Math.min(red, green, blue)
    pixels[index] = red + change
    pixels[index + 1] = green + change
    pixels[index + 2] = blue + change
  }
}

/** Whether a computed colour, such as `rgb(25, 33, 37)`, is dark. */
export const isDark = (colour: string): boolean => {
  const [red = 255, green = 255, blue = 255] = (colour.match(/[\d.]+/g) ?? []).map(Number)
  return red + green + blue < 3 * 128
}
