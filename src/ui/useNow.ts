import { onScopeDispose, type Ref, ref } from 'vue'

/** The current time, updated once a second while the component is mounted. */
export const useNow = (everyMs = 1000): Readonly<Ref<number>> => {
  const now = ref(Date.now())
  const timer = setInterval(() => {
    now.value = Date.now()
  }, everyMs)
  onScopeDispose(() => clearInterval(timer))
  return now
}
