export type Id = string | number

export type QueryValue = string | number | boolean

/** Query parameters. A list repeats the parameter; null and undefined are omitted. */
export type Query = Readonly<Record<string, QueryValue | readonly QueryValue[] | null | undefined>>

const PARAMETER = /:\w+/

/** Builds the address of a route. The id is encoded into one path segment. */
export const address = (path: string, id?: Id, query: Query = {}): string => {
  const filled = id === undefined ? path : path.replace(PARAMETER, () => segment(id))
  const text = queryText(query)
  return text === '' ? filled : `${filled}?${text}`
}

const segment = (id: Id): string => {
  const text = String(id)
  // An empty segment or a dot segment would lead to another path.
  if (text === '' || text === '.' || text === '..') throw new TypeError(`invalid id: "${text}"`)
  return encodeURIComponent(text)
}

const queryText = (query: Query): string => {
  const parameters = new URLSearchParams()
  for (const [name, values] of Object.entries(query)) {
    for (const value of [values].flat()) {
      if (value !== null && value !== undefined) parameters.append(name, String(value))
    }
  }
  return parameters.toString()
}
