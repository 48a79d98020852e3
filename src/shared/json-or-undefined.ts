/** The value of a JSON text; undefined, which is no value of JSON, if the text is not JSON. */
export const jsonOrUndefined = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
