import { computed, onScopeDispose, ref, shallowRef, watch } from 'vue'
import type { ChannelDetail, LivePublication } from '../relay/admin/contract.js'
import { get } from './api.js'
import { useApi } from './useApi.js'
import { useLive } from './useLive.js'

const MAX_PUBLICATIONS = 50
const RENDER_INTERVAL_MS = 250

/** A publication with a unique key: without history all offsets are 0, and times may be equal. */
export interface KeyedPublication extends LivePublication {
  readonly key: number
}

let nextKey = 0
const identityOf = ({ offset, time }: LivePublication): string => `${offset} ${time}`
const withKey = (publication: LivePublication): KeyedPublication => ({ ...publication, key: nextKey++ })

/** Reads a truncated publication from the history. */
export const completeData = async ({ channel, offset, data, isTruncated }: LivePublication): Promise<string> =>
  isTruncated ? (await get<LivePublication>('publication', { query: { channel, offset } })).data : data

/** The details of a channel and its latest publications, newest first, updated live. */
export const useChannel = (name: string) => {
  const { data, error, rejection, load } = useApi<ChannelDetail>('channel', () => ({ name }))
  const publications = shallowRef<readonly KeyedPublication[]>([])
  let pending: KeyedPublication[] = []
  /** Publications since the page was opened that the stream left out. */
  const skipped = ref(0)
  let isHistoryMissing = true

  // A busy channel receives hundreds of publications per second; the page renders them in batches.
  const render = (): void => {
    if (pending.length === 0) return
    publications.value = [...pending.reverse(), ...publications.value].slice(0, MAX_PUBLICATIONS)
    pending = []
  }
  const timer = setInterval(render, RENDER_INTERVAL_MS)
  const stop = useLive().follow(name, {
    publication: (publication) => {
      pending.push(withKey(publication))
      if (pending.length > MAX_PUBLICATIONS) pending.shift()
    },
    skipped: (count) => {
      skipped.value += count
    },
    started: () => {
      isHistoryMissing = true
      void load()
    }
  })
  onScopeDispose(() => {
    clearInterval(timer)
    stop()
  })

  // The history has the publications from before the stream began. Those that it skips later stay out of the list.
  watch(data, (detail) => {
    if (!isHistoryMissing) return
    isHistoryMissing = false
    const known = new Set([...publications.value, ...pending].map(identityOf))
    const missed = detail?.publications.filter((publication) => !known.has(identityOf(publication))) ?? []
    if (missed.length === 0) return
    publications.value = [...publications.value, ...missed.map(withKey)]
      .sort((one, other) => other.time - one.time || other.offset - one.offset)
      .slice(0, MAX_PUBLICATIONS)
  })

  /** The details are some seconds old; the list is not. */
  const lastPublish = computed(() => {
    const known = data.value?.lastPublish ?? null
    const listed = publications.value[0]?.time ?? null
    return known === null || listed === null ? (known ?? listed) : Math.max(known, listed)
  })

  return { detail: data, error, rejection, publications, skipped, lastPublish }
}
