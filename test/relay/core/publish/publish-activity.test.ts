import t from 'tap'
import { resolveChannel } from '../../../../src/relay/core/channel-names.js'
import { ReplyError } from '../../../../src/relay/core/codes.js'
import { PublishActivity } from '../../../../src/relay/core/publish/publish-activity.js'
import { configOf } from '../../../helper/relay-rules.js'

t.test(
  'the channels with the latest publications are known, however many channels a publisher generates',
  async (t) => {
    const resolved = resolveChannel('floor:1', configOf().channels)
    if (resolved instanceof ReplyError) throw new Error(resolved.message)
    const activity = new PublishActivity()
    for (let n = 0; n < 210_000; n++) {
      if (n % 70_000 === 0) activity.published('floor:busy', resolved, n, true)
      activity.published(`floor:${n}`, resolved, n, true)
    }

    t.equal(activity.channels.get('floor:busy')?.lastAt, 140_000)
    t.ok(activity.channels.size <= 200_000, `${activity.channels.size} channels`)
  }
)
