import { GatewaySyncStatusSchema } from '../../../../schemas/gateways.js'
import { defineRoutes, post } from './declare.js'

export const gateways = defineRoutes({
  domain: 'gateways',
  about: 'Gateways of receivers',
  rows: [post('/api/gateways/sync-status', 'Update the status of gateways', GatewaySyncStatusSchema)]
})
