import { Type } from '@sinclair/typebox'
import { ids } from '../../schemas/ids.js'
import { defineRoutes, post } from '../../src/gateway/routes/tables/declare.js'

/** Mutations that are not in the gateway's tables. The gateway forwards them unchecked; the backend checks their bodies. */
export const ownRoutes = defineRoutes({
  domain: 'alerts',
  about: 'Items that need attention',
  rows: [
    post(
      '/api/alerts/acknowledge',
      'Acknowledge alerts',
      Type.Object({ ids: ids('The alerts.') }, { $id: 'AlertAcknowledgement', additionalProperties: false })
    )
  ]
})
