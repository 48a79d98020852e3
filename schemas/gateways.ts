import { type Static, Type } from '@sinclair/typebox'
import { anything, integer, MAX_PROPERTIES, maybe, moment, text } from './field-kinds.js'
import { id, ids } from './ids.js'

const state = {
  gatewayId: maybe(id('The gateway.')),
  status: maybe(text('Its state.', 64)),
  message: maybe(text('What it says about its state.', 2000)),
  configVersion: maybe(id('The version of the settings that it runs with.')),
  firmwareVersion: maybe(text('The version of its firmware.', 64)),
  receiverCount: maybe(integer(0, 1_000_000, 'How many receivers report to it.')),
  lastSyncAt: maybe(moment('When it last took its settings.')),
  metadata: maybe(anything('Anything else that belongs to the gateway.'))
}

export const GatewaySyncStatusSchema = Type.Object(
  {
    ...state,
    gatewayIds: maybe(ids('The gateways that are meant, when several are.')),
    gateways: maybe(
      Type.Array(Type.Object(state, { additionalProperties: true, maxProperties: MAX_PROPERTIES }), {
        maxItems: 1000,
        description: 'The state of each, when several are reported.'
      })
    )
  },
  {
    $id: 'GatewaySyncStatus',
    title: 'Gateway state',
    description: 'Whether gateways in the buildings have the settings that they should have.',
    examples: [
      { gatewayId: 'gw-1', status: 'synced', configVersion: 17, lastSyncAt: 1763200000000, metadata: {} },
      { gatewayIds: ['gw-1', 'gw-2'], gateways: [{ gatewayId: 'gw-2', status: 'pending', metadata: {} }] }
    ],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type GatewaySyncStatus = Static<typeof GatewaySyncStatusSchema>
