import { type ConnectionRow, MAX_LIST_ROWS, type SubscriptionRow } from '../relay/admin/contract.js'
import { countText } from './figures.js'

export const userText = (user: string): string => (user === '' ? 'anonymous' : user)

/** Name and version that the client library reports, such as `js 5.3.4`. */
export const clientText = ({ clientName, clientVersion }: ConnectionRow): string =>
  `${clientName} ${clientVersion}`.trim() || '–'

/** How a client is subscribed, such as `server-side, at most 2 per second`. */
export const optionsText = ({
  isServerSide,
  isPositioned,
  usesDelta,
  isFiltered,
  rate,
  view
}: SubscriptionRow): string =>
  [
    isServerSide && 'server-side',
    isPositioned && 'recovers',
    usesDelta && 'delta',
    isFiltered && 'filtered by tags',
    rate !== null && `at most ${rate} per second`,
    view !== null && `view ${view.replace(/[{}"]/g, '').replace(/([:,])/g, '$1 ')}`
  ]
    .filter((text) => text !== false)
    .join(', ') || '–'

export const clip = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text

/** The number of rows of a list, such as `12 found`. */
export const totalText = (total: number | null, search: string): string => {
  if (total === null) return ''
  const limit = total > MAX_LIST_ROWS ? `; the list shows the first ${countText(MAX_LIST_ROWS)}` : ''
  return `${countText(total)} ${search ? 'found' : 'in total'}${limit}`
}
