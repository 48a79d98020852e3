import { onScopeDispose, shallowRef, watch } from 'vue'
import type { ChannelDetail, LivePublication } from '../relay/admin/contract.js'
import { useApi } from './useApi.js'
import { useLive } from './useLive.js'

const MAX_PUBLICATIONS = 50
const RENDER_INTERVAL_MS = 250

/** A publication with a unique key: without history all offsets are 0, and times may be equal. */
export interface KeyedPublication extends LivePublication {
  readonly key: number
}

let nextKey = 0
const withKey = (publication: LivePublication): KeyedPublication => ({ ...publication, key: nextKey++ })

/** The details of a channel and its publications, newest first, updated live. */
export const useChannel = (name: string) => {
  const { data, error, rejection } = useApi<ChannelDetail>('channel', () => ({ name }))
  const publications = shallowRef<readonly KeyedPublication[]>([])
  let pending: KeyedPublication[] = []

  // A busy channel receives hundreds of publications per second; the page renders them in batches.
  const render = (): void => {
    if (pending.length === 0) return
    publications.value = [...pending.reverse(), ...publications.value].slice(0, MAX_PUBLICATIONS)
    pending = []
  }
  const timer = setInterval(render, RENDER_INTERVAL_MS)
  const stop = useLive().follow(name, (publication) => {
    pending.push(withKey(publication))
    if (pending.length > MAX_PUBLICATIONS) pending.shift()
  })
  onScopeDispose(() => {
    clearInterval(timer)
    stop()
  })

  // Publications from the history are added below those received live.
  watch(data, (detail, before) => {
    if (detail === null || before !== null) return
    const oldestLive = publications.value.at(-1)?.time ?? pending[0]?.time ?? Number.POSITIVE_INFINITY
    const earlier = detail.publications
      .filter(({ time }) => time < oldestLive)
      .sort((one, other) => other.time - one.time)
      .map(withKey)
    publications.value = [...publications.value, ...earlier].slice(0, MAX_PUBLICATIONS)
  })

  return { detail: data, error, rejection, publications }
}
