/**
 * The index after the string whose content begins at `start`, in valid JSON. Not a regular expression: one that matches pairs
 * of quotes backtracks for minutes, or exceeds the stack.
 */
export const endOfString = (text: string, start: number): number => {
  let end = text.indexOf('"', start)
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end + 1
}

const isEscaped = (text: string, index: number): boolean => {
  let first = index
  while (text[first - 1] === '\\') first -= 1
  return (index - first) % 2 === 1
}
