import { ApiError, type Progress } from 'gatehouse-client'
import { ref } from 'vue'
import { percent } from '../../../src/ui/format.js'
import { useAttempt } from './useAttempt.js'

const MEGABYTE = 1_000_000

interface ImageUpload {
  readonly maxMegabytes: number
  readonly upload: (file: File, options: { readonly onProgress: (progress: Progress) => void }) => Promise<unknown>
  /** Called after each successful change. */
  readonly changed: () => void
}

/** The upload of an image through a file input, with its progress and its error. */
export const useImageUpload = ({ maxMegabytes, upload, changed }: ImageUpload) => {
  const { error, isBusy, attempt } = useAttempt()
  /** Upload progress in percent; null if no upload is running. */
  const sent = ref<number | null>(null)

  const change = async (work: () => Promise<unknown>): Promise<void> => {
    if (await attempt(work)) changed()
  }

  /** Listener of the file input. */
  const choose = async ({ target }: Event): Promise<void> => {
    // Only a file input has this listener.
    const input = target as HTMLInputElement
    const [file] = input.files ?? []
    // Allows choosing the same file again.
    input.value = ''
    if (file === undefined || isBusy.value) return
    sent.value = 0
    const onProgress = ({ sentBytes, totalBytes }: Progress): void => {
      sent.value = percent(sentBytes, totalBytes ?? file.size)
    }
    // Checked here, because a browser may not see the response if the service closes a large upload early.
    const isTooLarge = file.size > maxMegabytes * MEGABYTE
    await change(() => (isTooLarge ? Promise.reject(tooLarge(maxMegabytes)) : upload(file, { onProgress })))
    sent.value = null
  }

  return { error, isBusy, sent, change, choose }
}

const tooLarge = (maxMegabytes: number): ApiError =>
  new ApiError({ code: 'BODY_TOO_LARGE', message: `The file is larger than ${maxMegabytes} MB.` })
