import { computed, ref, shallowRef } from 'vue'
import type { Check, CheckState, Frame, LivePublication } from '../relay/admin/contract.js'
import { addressOf } from './api.js'
import { LiveStream, type StreamState } from './live-stream.js'
import { withFrame } from './series.js'
import { useSession } from './useSession.js'

const { ask, end, keepAlive } = useSession()

const frames = shallowRef<readonly Frame[]>([])
const checks = shallowRef<readonly Check[]>([])
const streamState = ref<StreamState>('connecting')
let hear = (_publication: LivePublication): void => undefined

const stream = new LiveStream({
  addressOf: (channel) => addressOf('live', channel === '' ? {} : { channel }),
  on: {
    history: (known) => {
      frames.value = known
    },
    frame: (frame) => {
      frames.value = withFrame(frames.value, frame)
      keepAlive()
    },
    checks: (current) => {
      checks.value = current
    },
    publication: (publication) => hear(publication),
    end
  },
  onState: (state) => {
    streamState.value = state
  },
  onRefused: () => void ask(true)
})

const stateOf = (wanted: CheckState): readonly Check[] => checks.value.filter(({ state }) => state === wanted)

/** Everything that comes over the stream. */
export const useLive = () => ({
  frames,
  /** The newest one. */
  frame: computed(() => frames.value.at(-1) ?? null),
  checks,
  reds: computed(() => stateOf('red')),
  ambers: computed(() => stateOf('amber')),
  streamState,
  open: (): void => {
    streamState.value = 'connecting'
    stream.open()
  },
  close: (): void => {
    stream.close()
    frames.value = []
    checks.value = []
  },
  /** Its publications come with the rest until the returned function is called. */
  follow: (channel: string, then: (publication: LivePublication) => void): (() => void) => {
    hear = (publication) => {
      if (publication.channel === channel) then(publication)
    }
    stream.listenTo(channel)
    return () => {
      hear = () => undefined
      stream.listenTo('')
    }
  }
})
