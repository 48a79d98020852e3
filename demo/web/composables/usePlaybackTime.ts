import { computed, watch } from 'vue'
import { useRoute, useRouter } from 'vue-router'
import { textOfTime, timeOfText } from '../history/playback-time.js'

/** The URL follows a playback this often: browsers limit the number of changes. */
const WRITE_EVERY_MS = 2000
const HOUR_MS = 60 * 60_000

/**
 * The time of a playback, which is in the URL: a link or a reload shows the same time, and the back button of the browser
 * closes the playback. `onTime` is called with the time of a link or of another entry of the browser's history.
 */
export const usePlaybackTime = (onTime: (ms: number) => void) => {
  const route = useRoute()
  const router = useRouter()
  const textInUrl = (): string | null => (typeof route.query.at === 'string' ? route.query.at : null)
  const isOn = computed(() => timeOfText(textInUrl()) !== null)
  let writtenText = textInUrl()
  let writtenAtMs = 0
  watch(textInUrl, (text) => {
    const ms = timeOfText(text)
    if (text !== writtenText && ms !== null) onTime(ms)
    writtenText = text
  })

  const queryAt = (ms: number) => ({ query: { ...route.query, at: textOfTime(ms) }, hash: route.hash })
  return {
    isOn,
    firstMs: timeOfText(textInUrl()),
    /** Begins an hour ago. */
    open: (): void => void router.push(queryAt(Date.now() - HOUR_MS)),
    close: (): void => {
      const { at: _at, ...query } = route.query
      const live = { path: route.path, query, hash: route.hash }
      // Without a second entry of the live plan, unless the playback was opened by a link.
      const before = router.resolve(String(history.state?.back ?? '/'))
      if (before.path !== route.path || before.query.at !== undefined) {
        void router.replace(live)
        return
      }
      // The selection and the view of the playback stay.
      const stopWaiting = router.afterEach(() => {
        stopWaiting()
        void router.replace(live)
      })
      router.back()
    },
    /** Writes the current time into the URL: at once if it is settled, otherwise now and then. */
    write: (ms: number, isSettled: boolean): void => {
      const text = textOfTime(ms)
      if (!isOn.value || text === writtenText || (!isSettled && Date.now() - writtenAtMs < WRITE_EVERY_MS)) return
      writtenAtMs = Date.now()
      writtenText = text
      void router.replace(queryAt(ms))
    }
  }
}
