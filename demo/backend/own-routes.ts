import { Type } from '@sinclair/typebox'
import { ids } from '../../schemas/ids.js'
import { defineRoutes, patch, post } from '../../src/gateway/routes/tables/declare.js'
import { InstructionsSchema } from '../emergency-types.js'

/** Write requests that are not in the gateway's tables. The gateway forwards them unchecked; the backend checks their bodies. */
export const ownRoutes = defineRoutes({
  domain: 'demo',
  about: 'Alerts and emergency instructions',
  rows: [
    post(
      '/api/alerts/acknowledge',
      'Acknowledge alerts',
      Type.Object({ ids: ids('The alerts.') }, { $id: 'AlertAcknowledgement', additionalProperties: false })
    ),
    patch('/api/emergency/instructions/:id', 'Change the emergency instructions of a building', InstructionsSchema)
  ]
})
