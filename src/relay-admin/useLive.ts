import { computed, ref, shallowRef } from 'vue'
import type { Check, CheckState, FigureSample, LivePublication } from '../relay/admin/contract.js'
import { liveSource } from './live-source.js'
import type { LiveEvent, StreamState } from './live-stream.js'
import { withHistory, withSample } from './samples.js'
import { useSession } from './useSession.js'

const { loadSession, end, keepAlive } = useSession()

const samples = shallowRef<readonly FigureSample[]>([])
const checks = shallowRef<readonly Check[]>([])
const streamState = ref<StreamState>('connecting')
let onPublication = (_publication: LivePublication): void => undefined

const receive = (event: LiveEvent): void => {
  switch (event.name) {
    case 'history':
      samples.value = withHistory(samples.value, event.data)
      break
    case 'sample':
      samples.value = withSample(samples.value, event.data)
      keepAlive()
      break
    case 'checks':
      checks.value = event.data
      break
    case 'publication':
      onPublication(event.data)
      break
    case 'end':
      end()
  }
}

const source = liveSource({
  onEvent: receive,
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
    source.open()
  },
  close: (): void => {
    source.close()
    samples.value = []
    checks.value = []
  },
  /** Calls back for every publication of the channel, until the returned function is called. */
  follow: (channel: string, callback: (publication: LivePublication) => void): (() => void) => {
    onPublication = (publication) => {
      if (publication.channel === channel) callback(publication)
    }
    source.selectChannel(channel)
    return () => {
      onPublication = () => undefined
      source.selectChannel('')
    }
  }
})
