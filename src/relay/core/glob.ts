/** `*` for any text and `?` for any character; everything else stands for itself. */
export const globTest = (pattern: string): ((name: string) => boolean) => {
  // Several stars in a row mean the same as one, and would be walked through for every name.
  const glob = pattern.replace(/\*+/g, '*')
  // Without a regular expression, which a pattern full of stars would keep busy for ever.
  return (name) => {
    let at = 0
    let from = 0
    let star = -1
    let mark = 0
    while (from < name.length) {
      if (at < glob.length && glob[at] !== '*' && (glob[at] === '?' || glob[at] === name[from])) {
        at++
        from++
      } else if (glob[at] === '*') {
        star = at++
        mark = from
      } else if (star !== -1) {
        at = star + 1
        from = ++mark
      } else return false
    }
    if (glob[at] === '*') at++
    return at === glob.length
  }
}
