/** Where the list of a publication is, and the key of its entries. */
export interface ConflatePath {
  /** Names from the outermost object to the list; none where the publication itself is the list. */
  readonly list: readonly string[]
  /** Names from an entry to its key. */
  readonly key: readonly string[]
}

const NAME = '[A-Za-z_$][\\w$-]*'
const SHAPE = new RegExp(`^((?:${NAME}(?:\\.${NAME})*)?)\\[\\]\\.(${NAME}(?:\\.${NAME})*)$`)

/** Of a text such as `data[].transmitterId`, `[].id` or `a.b[].c.d`; null where it is none. */
export const parseConflatePath = (text: string): ConflatePath | null => {
  const [, list, key] = SHAPE.exec(text) ?? []
  if (list === undefined || key === undefined) return null
  return { list: list === '' ? [] : list.split('.'), key: key.split('.') }
}
