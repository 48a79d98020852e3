import { onScopeDispose, shallowRef, watch } from 'vue'
import type { ChannelDetail, LivePublication } from '../relay/admin/contract.js'
import { useAnswer } from './useAnswer.js'
import { useLive } from './useLive.js'

const KEPT = 50
const SHOW_EVERY_MS = 250

/** Told apart by when it was heard of: without a history, offsets do not tell, and a millisecond has room for many. */
export interface HeardPublication extends LivePublication {
  readonly heardAs: number
}

let heard = 0
const hear = (publication: LivePublication): HeardPublication => ({ ...publication, heardAs: heard++ })

/** One channel: what is known of it, and its publications as they come in, newest first. */
export const useChannel = (name: string) => {
  const { data, error } = useAnswer<ChannelDetail>('channel', () => ({ name }))
  const publications = shallowRef<readonly HeardPublication[]>([])
  let fresh: HeardPublication[] = []

  // A busy channel brings hundreds in a second; the page is drawn a few times.
  const show = (): void => {
    if (fresh.length === 0) return
    publications.value = [...fresh.reverse(), ...publications.value].slice(0, KEPT)
    fresh = []
  }
  const timer = setInterval(show, SHOW_EVERY_MS)
  const stop = useLive().follow(name, (publication) => {
    fresh.push(hear(publication))
    if (fresh.length > KEPT) fresh.shift()
  })
  onScopeDispose(() => {
    clearInterval(timer)
    stop()
  })

  // What was kept from before comes under what has come in since.
  watch(data, (detail, before) => {
    if (detail === null || before !== null) return
    const newestKnown = publications.value.at(-1)?.time ?? fresh[0]?.time ?? Number.POSITIVE_INFINITY
    const kept = detail.publications
      .filter(({ time }) => time < newestKnown)
      .sort((one, other) => other.time - one.time)
      .map(hear)
    publications.value = [...publications.value, ...kept].slice(0, KEPT)
  })

  return { detail: data, error, publications }
}
