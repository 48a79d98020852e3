import { type Static, Type } from '@sinclair/typebox'
import { anything, integer, MAX_PROPERTIES, maybe, moment, text } from './field-kinds.js'
import { id, ids } from './ids.js'

const state = {
  gatewayId: maybe(id('The gateway.')),
  status: maybe(text('The status.', 64)),
  message: maybe(text('The reported status.', 2000)),
  configVersion: maybe(id('The version of the settings in use.')),
  firmwareVersion: maybe(text('The version of its firmware.', 64)),
  receiverCount: maybe(integer(0, 1_000_000, 'The number of connected receivers.')),
  lastSyncAt: maybe(moment('The time of the last settings update.')),
  metadata: maybe(anything('Anything else that belongs to the gateway.'))
}

export const GatewaySyncStatusSchema = Type.Object(
  {
    ...state,
    gatewayIds: maybe(ids('The gateways, if there are several.')),
    gateways: maybe(
      Type.Array(Type.Object(state, { additionalProperties: true, maxProperties: MAX_PROPERTIES }), {
        maxItems: 1000,
        description: 'The status of each gateway, if several are reported.'
      })
    )
  },
  {
    $id: 'GatewaySyncStatus',
    title: 'Gateway state',
    description: 'Whether the gateways in the buildings have the current settings.',
    examples: [
      { gatewayId: 'gw-1', status: 'synced', configVersion: 17, lastSyncAt: 1763200000000, metadata: {} },
      { gatewayIds: ['gw-1', 'gw-2'], gateways: [{ gatewayId: 'gw-2', status: 'pending', metadata: {} }] }
    ],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type GatewaySyncStatus = Static<typeof GatewaySyncStatusSchema>
