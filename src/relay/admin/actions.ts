import { Type } from '@sinclair/typebox'
import { FORCED } from '../core/disconnect.js'
import { ReplyError } from '../core/errors.js'
import type { Fleet } from '../core/fleet.js'
import { fieldText } from '../core/json-text.js'
import type { ApiCalls } from '../edge/api-calls.js'
import type { AdminCall } from './call.js'
import type { TestPublished } from './contract.js'

// What operators can change. Each leaves a line in the log.

interface ActionLog {
  info(facts: object, message: string): void
}

const PUBLISH = Type.Object(
  { channel: Type.String({ minLength: 1, maxLength: 1024 }), data: Type.Unknown() },
  { additionalProperties: false }
)
const MAX_PUBLISH_BYTES = 64 * 1024

/** The very call that publishers make, so that what is refused there is refused here. */
export const testPublish =
  (calls: ApiCalls, log: ActionLog) =>
  (call: AdminCall): Promise<void> =>
    call.body(PUBLISH, MAX_PUBLISH_BYTES, async ({ channel }, text) => {
      // The text that was sent, not one that was written anew; of two equal names nobody knows which one is meant.
      const data = fieldText(text, 'data')
      const request = `{"channel":${JSON.stringify(channel)},"data":${data}}`
      const reply = data === null ? null : await calls.one('publish', Buffer.from(request))
      if (reply === null || reply instanceof ReplyError) {
        call.refuse(400, 'PUBLISH_REFUSED', reply?.message ?? 'data must be there once')
        return
      }
      log.info({ address: call.address, channel }, 'an operator published')
      const { offset = 0, epoch = '' } = JSON.parse(String(reply)).result as Partial<TestPublished>
      call.json({ offset, epoch } satisfies TestPublished)
    })

const DISCONNECT = Type.Object(
  { user: Type.String({ maxLength: 1024 }), client: Type.String({ maxLength: 128 }) },
  { additionalProperties: false }
)
const MAX_DISCONNECT_BYTES = 8192

export const disconnect =
  (fleet: Fleet, log: ActionLog) =>
  (call: AdminCall): Promise<void> =>
    call.body(DISCONNECT, MAX_DISCONNECT_BYTES, async ({ user, client }) => {
      const { code, reason } = FORCED
      const params = { whom: { user, client, session: '' }, spared: [], code, reason }
      const { isConfirmed } = await fleet.apply('disconnect', params)
      log.info({ address: call.address, user, client, isConfirmed }, 'an operator disconnected')
      if (!isConfirmed) {
        call.refuse(503, 'NODES_AWAY', 'Done here; not every other node has confirmed. The relay goes on trying.')
        return
      }
      call.nothing()
    })
