import { computed, ref, shallowRef } from 'vue'
import type { Check, CheckState, FigureSample, LivePublication } from '../relay/admin/contract.js'
import { addressOf } from './api.js'
import { LiveStream, type StreamState } from './live-stream.js'
import { withSample } from './samples.js'
import { useSession } from './useSession.js'

const { loadSession, end, keepAlive } = useSession()

const samples = shallowRef<readonly FigureSample[]>([])
const checks = shallowRef<readonly Check[]>([])
const streamState = ref<StreamState>('connecting')
let onPublication = (_publication: LivePublication): void => undefined

const stream = new LiveStream({
  addressOf: (channel) => addressOf('live', channel === '' ? {} : { channel }),
  on: {
    history: (earlier) => {
      samples.value = earlier
    },
    sample: (sample) => {
      samples.value = withSample(samples.value, sample)
      keepAlive()
    },
    checks: (current) => {
      checks.value = current
    },
    publication: (publication) => onPublication(publication),
    end
  },
  onState: (state) => {
    streamState.value = state
  },
  onRejected: () => void loadSession(true)
})

const checksIn = (wanted: CheckState): readonly Check[] => checks.value.filter(({ state }) => state === wanted)

/** The data of the live stream. */
export const useLive = () => ({
  samples,
  /** The latest sample. */
  sample: computed(() => samples.value.at(-1) ?? null),
  checks,
  reds: computed(() => checksIn('red')),
  ambers: computed(() => checksIn('amber')),
  streamState,
  open: (): void => {
    streamState.value = 'connecting'
    stream.open()
  },
  close: (): void => {
    stream.close()
    samples.value = []
    checks.value = []
  },
  /** Calls back for every publication of the channel, until the returned function is called. */
  follow: (channel: string, callback: (publication: LivePublication) => void): (() => void) => {
    onPublication = (publication) => {
      if (publication.channel === channel) callback(publication)
    }
    stream.selectChannel(channel)
    return () => {
      onPublication = () => undefined
      stream.selectChannel('')
    }
  }
})
