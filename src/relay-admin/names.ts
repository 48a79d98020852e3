import type { ConnectionRow, LivePublication, SubscriptionRow } from '../relay/admin/contract.js'

export const userText = (user: string): string => (user === '' ? 'anonymous' : user)

/** Name and version that the client library reports, such as `js 5.3.4`. */
export const clientText = ({ clientName, clientVersion }: ConnectionRow): string =>
  `${clientName} ${clientVersion}`.trim() || '–'

/** How a client is subscribed, such as `server-side, at most 2 per second`. */
export const optionsText = ({ isServerSide, isPositioned, usesDelta, isFiltered, rate }: SubscriptionRow): string =>
  [
    isServerSide && 'server-side',
    isPositioned && 'recovers',
    usesDelta && 'delta',
    isFiltered && 'filtered by tags',
    rate !== null && `at most ${rate} per second`
  ]
    .filter((text) => text !== false)
    .join(', ') || '–'

const PREVIEW_LENGTH = 400

/** The text of a publication in a list of many. */
export const previewText = ({ data }: LivePublication): string =>
  data.length > PREVIEW_LENGTH ? `${data.slice(0, PREVIEW_LENGTH)}…` : data
