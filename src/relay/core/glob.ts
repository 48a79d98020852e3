/** `*` for any text and `?` for any character; everything else stands for itself. */
export const globTest = (pattern: string): ((name: string) => boolean) => {
  // Without a regular expression, which a pattern full of stars would keep busy for ever.
  return (name) => {
    let at = 0
    let from = 0
    let star = -1
    let mark = 0
    while (from < name.length) {
      if (at < pattern.length && pattern[at] !== '*' && (pattern[at] === '?' || pattern[at] === name[from])) {
        at++
        from++
      } else if (pattern[at] === '*') {
        star = at++
        mark = from
      } else if (star !== -1) {
        at = star + 1
        from = ++mark
      } else return false
    }
    while (pattern[at] === '*') at++
    return at === pattern.length
  }
}
