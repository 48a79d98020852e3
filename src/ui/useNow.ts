import { onScopeDispose, type Ref, ref } from 'vue'

/** The time, brought up to date once a second while somebody looks. */
export const useNow = (everyMs = 1000): Readonly<Ref<number>> => {
  const now = ref(Date.now())
  const timer = setInterval(() => {
    now.value = Date.now()
  }, everyMs)
  onScopeDispose(() => clearInterval(timer))
  return now
}
