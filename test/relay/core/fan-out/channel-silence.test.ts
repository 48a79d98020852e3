import t from 'tap'
import { longestSilences, silentChannels } from '../../../../src/relay/core/fan-out/channel-silence.js'

const open = (name: string, silentSince: number, size = 1) => ({
  name,
  namespace: name.split(':', 1).join(''),
  size,
  silentSince,
  limited: new Map<number, number>(),
  viewCounts: null
})

t.test('longestSilences returns the longest silence of each namespace', async (t) => {
  const channels = [open('floor:1', 900), open('floor:2', 400), open('chat:1', 1000), open('floor:3', 0, 0)]
  t.same(
    [...longestSilences(channels, 1000)],
    [
      ['floor', 600],
      ['chat', 0]
    ]
  )
})

t.test('silentChannels counts all silent channels and lists the most silent ones in order', async (t) => {
  const channels = [5, 1, 9, 3, 7].map((silent) => open(`floor:${silent}`, 100 - silent))
  t.same(silentChannels([...channels, open('floor:unused', 0, 0)], 100, 3, 2), {
    count: 4,
    longest: [
      { name: 'floor:9', silentMs: 9 },
      { name: 'floor:7', silentMs: 7 }
    ]
  })
})
