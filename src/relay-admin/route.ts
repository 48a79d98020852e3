// The current view is in the fragment of the URL, such as `#/channel?name=chat:3`.

export const VIEWS = [
  'overview',
  'checks',
  'channels',
  'channel',
  'connections',
  'connection',
  'backends',
  'config'
] as const
export type View = (typeof VIEWS)[number]

export interface Route {
  readonly view: View
  readonly query: Readonly<Record<string, string>>
}

/** The views of one channel or connection, with the field that selects it and the list of all. */
const DETAIL_VIEWS: Readonly<Partial<Record<View, { readonly field: string; readonly list: View }>>> = {
  channel: { field: 'name', list: 'channels' },
  connection: { field: 'client', list: 'connections' }
}

/** Unknown views become the overview, and details without a selection the list. */
export const parseRoute = (hash: string): Route => {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s)
  const view = VIEWS.find((known) => known === path)
  if (view === undefined) return { view: 'overview', query: {} }
  const query = Object.fromEntries(new URLSearchParams(search))
  const detail = DETAIL_VIEWS[view]
  return detail !== undefined && !query[detail.field] ? { view: detail.list, query: {} } : { view, query }
}

export const hashOf = (view: View, query: Readonly<Record<string, string | number>> = {}): string => {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== '') search.set(name, String(value))
  return search.size === 0 ? `#/${view}` : `#/${view}?${search}`
}
