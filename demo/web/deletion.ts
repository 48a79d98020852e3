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
  const load = async (): Promise<void> => {
    if (path === undefined) return
    try {
      const { data } = await call<DataResponse<Deletion>>('GET', `${path}/${encodeURIComponent(id)}/deletion`)
      const place = data.building === null ? '' : ` in ${data.building}`
      text.value = [`${place} will be deleted.`, ...data.consequences].join(' ')
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      text.value = ` will be deleted. What goes with it is not known: ${error.message}`
    }
  }
  return { text, load }
}
