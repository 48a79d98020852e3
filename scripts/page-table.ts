/** A page with what stands between the two marks of this name written anew. */
export const withTable = (page: string, name: string, table: string): string => {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`]
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from === -1 || to < from) throw new Error(`the page has no place for the ${name}`)
  return `${page.slice(0, from + begin.length)}\n${table}\n${page.slice(to)}`
}
