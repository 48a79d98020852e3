// The current view is in the fragment of the URL, such as `#/channel?name=chat:3`.

export const VIEWS = ['overview', 'checks', 'channels', 'channel', 'connections', 'connection', 'config'] as const
export type View = (typeof VIEWS)[number]

export interface Route {
  readonly view: View
  readonly query: Readonly<Record<string, string>>
}

/** Unknown views become the overview. */
export const parseRoute = (hash: string): Route => {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s)
  const view = VIEWS.find((known) => known === path)
  return view === undefined
    ? { view: 'overview', query: {} }
    : { view, query: Object.fromEntries(new URLSearchParams(search)) }
}

export const hashOf = (view: View, query: Readonly<Record<string, string | number>> = {}): string => {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== '') search.set(name, String(value))
  return search.size === 0 ? `#/${view}` : `#/${view}?${search}`
}
