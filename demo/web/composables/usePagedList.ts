import { computed, ref, watch } from 'vue'
import type { CallOptions } from '../../../src/client/api/calls.js'
import { useLoad } from '../../../src/ui/useLoad.js'
import type { ListAnswer } from '../types.js'
import { messageOf } from './useLoad.js'

const ASK_AFTER_MS = 200
export const LIST_LIMIT = 20

/** A long list, part by part, with a search. */
export const usePagedList = <Row>(list: (options: CallOptions) => Promise<ListAnswer<Row>>) => {
  const search = ref('')
  const offset = ref(0)
  const query = computed(() => ({ limit: LIST_LIMIT, offset: offset.value, search: search.value.trim() || null }))
  const { data, error, load } = useLoad((signal) => list({ query: query.value, signal }), messageOf)

  watch(search, () => {
    offset.value = 0
  })
  watch(query, (_new, _old, onCleanup) => {
    const timer = setTimeout(() => void load(), ASK_AFTER_MS)
    onCleanup(() => clearTimeout(timer))
  })
  // Who deletes the last one of a part is shown the part before it.
  watch(data, (answer) => {
    if (answer && answer.data.length === 0 && offset.value > 0) offset.value = Math.max(offset.value - LIST_LIMIT, 0)
  })
  void load()

  return {
    rows: computed(() => data.value?.data ?? []),
    total: computed(() => data.value?.meta?.total ?? data.value?.data.length ?? null),
    search,
    offset,
    error,
    load
  }
}
