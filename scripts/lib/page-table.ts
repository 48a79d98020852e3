/** Returns the page with the text between the two markers of this name replaced by the table. */
export const withTable = (page: string, name: string, table: string): string => {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`]
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from === -1 || to < from) throw new Error(`the page has no markers for ${name}`)
  return `${page.slice(0, from + begin.length)}\n${table}\n${page.slice(to)}`
}
