import { computed, onScopeDispose, ref } from 'vue'
import { waitText } from './format.js'

/** For those who tried too often: the seconds that are left, and a sentence about them while there are any. */
export const useWait = () => {
  const seconds = ref(0)
  const timer = setInterval(() => {
    seconds.value = Math.max(seconds.value - 1, 0)
  }, 1000)
  onScopeDispose(() => clearInterval(timer))
  const sentence = computed(() =>
    seconds.value > 0 ? `Too many attempts. Try again in ${waitText(seconds.value)}.` : ''
  )
  return { seconds, sentence }
}
