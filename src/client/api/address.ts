export type Id = string | number

export type QueryValue = string | number | boolean

/** What stands behind the question mark. A list is its name several times; null and undefined are left out. */
export type Query = Readonly<Record<string, QueryValue | readonly QueryValue[] | null | undefined>>

const PARAMETER = /:\w+/

/** The address of a declared path. An id is one segment, whatever is in it. */
export const address = (path: string, id?: Id, query: Query = {}): string => {
  const filled = id === undefined ? path : path.replace(PARAMETER, () => segment(id))
  const text = queryText(query)
  return text === '' ? filled : `${filled}?${text}`
}

const segment = (id: Id): string => {
  const text = String(id)
  // An empty one would make another address, and these two would be taken for steps between folders.
  if (text === '' || text === '.' || text === '..') throw new TypeError(`no id: "${text}"`)
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
