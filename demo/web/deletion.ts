import { ApiError } from 'gatehouse-client'
import { ref } from 'vue'
import { call } from './services.js'
import type { DataResponse } from './types.js'

interface Deletion {
  readonly building: string | null
  readonly consequences: readonly string[]
}

/** The end of the sentence about a deletion: where the record is, and what is deleted or changed with it. */
export const deletionOf = (path: string | undefined, id: string) => {
  const text = ref(' will be deleted.')
  let loading: AbortController | null = null
  const load = async (): Promise<void> => {
    if (path === undefined) return
    loading = new AbortController()
    const { signal } = loading
    try {
      const { data } = await call<DataResponse<Deletion>>('GET', `${path}/${encodeURIComponent(id)}/deletion`, {
        signal
      })
      const place = data.building === null ? '' : ` in ${data.building}`
      text.value = [`${place} will be deleted.`, ...data.consequences].join(' ')
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.code === 'ABORTED') return
      text.value = ` will be deleted. What goes with it is not known: ${error.message}`
    }
  }
  /** Called before the deletion: a later response would only say that there is no such record. */
  const cancel = (): void => loading?.abort()
  return { text, load, cancel }
}
