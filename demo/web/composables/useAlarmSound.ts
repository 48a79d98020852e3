import { onScopeDispose, type Ref, ref, watch } from 'vue'

const STORAGE_KEY = 'gatehouse-alarm-sound'
const BEEP_EVERY_MS = 4000
const BEEP_SECONDS = 0.5
const HERTZ = 880

/** Whether this browser plays a sound during an emergency. */
export const isSoundOn = ref(localStorage.getItem(STORAGE_KEY) === 'on')
watch(isSoundOn, (isOn) => localStorage.setItem(STORAGE_KEY, isOn ? 'on' : 'off'))

/** The browser allows no sound before the user has interacted with the page, for example after a reload. */
export const isSoundBlocked = ref(false)

/** Plays a sound every few seconds while an emergency is active and the sound is on. */
export const useAlarmSound = (isActive: Ref<boolean>): void => {
  let audio: AudioContext | null = null
  const play = (): void => {
    if (!isActive.value || !isSoundOn.value) {
      isSoundBlocked.value = false
      return
    }
    if (audio === null) {
      audio = new AudioContext()
      audio.onstatechange = play
    }
    isSoundBlocked.value = audio.state === 'suspended'
    if (isSoundBlocked.value) return
    const tone = audio.createOscillator()
    tone.frequency.value = HERTZ
    tone.connect(audio.destination)
    tone.start()
    tone.stop(audio.currentTime + BEEP_SECONDS)
  }
  watch([isActive, isSoundOn], play, { immediate: true })
  const timer = setInterval(play, BEEP_EVERY_MS)
  const unblock = (): unknown => isSoundBlocked.value && audio?.resume().catch(() => undefined)
  addEventListener('click', unblock)
  onScopeDispose(() => {
    clearInterval(timer)
    removeEventListener('click', unblock)
    if (audio) audio.onstatechange = null
    void audio?.close()
  })
}
