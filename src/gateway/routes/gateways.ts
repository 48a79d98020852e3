import { GatewaySyncStatusSchema } from '../../../schemas/gateways.js'
import { post, type RouteTable } from './declare.js'

export const gateways: RouteTable = {
  domain: 'gateways',
  about: 'Gateways of receivers',
  rows: [post('/api/gateways/sync-status', 'Update the status of gateways', GatewaySyncStatusSchema)]
}
