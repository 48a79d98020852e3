import t from 'tap'
import { coreRelay } from '../../../helper/relay-core.js'

const setUp = async () => {
  const relay = coreRelay({ channel: { without_namespace: { allow_subscribe_for_client: true } } })
  const client = await relay.connected('42')
  for (const [index, channel] of ['a', 'b', 'c'].entries()) await client.send({ id: index + 2, subscribe: { channel } })
  const page = (pattern: string, after: number) => relay.relay.surveyHandlers.handle('channelPage', { pattern, after })
  return { ...relay, page }
}

t.test('a page of channels begins after the sequence number of the request', async (t) => {
  const { page } = await setUp()

  t.same(await page('', 1), {
    channels: [
      ['b', 1],
      ['c', 1]
    ],
    next: null
  })
})

t.test('a malformed pattern of another node matches no channel', async (t) => {
  const { page } = await setUp()

  t.same(await page('[', 0), { channels: [], next: null })
})
