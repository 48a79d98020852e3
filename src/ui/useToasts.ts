import { ref } from 'vue'

export interface Toast {
  readonly id: number
  readonly text: string
}

const SHOWN_MS = 5000
/** Older ones disappear earlier. */
const MAX_SHOWN = 4
const toasts = ref<readonly Toast[]>([])
let lastId = 0

/** Short messages that disappear after five seconds. Screen readers announce them. */
export const useToasts = () => ({
  toasts,
  showToast: (text: string): void => {
    const id = ++lastId
    toasts.value = [...toasts.value, { id, text }].slice(-MAX_SHOWN)
    setTimeout(() => {
      toasts.value = toasts.value.filter((toast) => toast.id !== id)
    }, SHOWN_MS)
  }
})
