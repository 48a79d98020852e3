/** The approximate width of a letter of 12 pixels; the exact one depends on the font. */
const LETTER = 6.5
const WIDE_LETTER = 12.5
/** From here on, letters are as wide as high: Chinese, Japanese, Korean, and emoji. */
const WIDE_FROM = 0x2e80

/** The approximate width of a name in pixels, rather too large than too small. */
export const textWidth = (text: string): number => {
  let width = 0
  for (const letter of text) width += (letter.codePointAt(0) ?? 0) >= WIDE_FROM ? WIDE_LETTER : LETTER
  return width
}
