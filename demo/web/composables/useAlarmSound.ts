import { onScopeDispose, type Ref, ref, watch } from 'vue'

const STORAGE_KEY = 'gatehouse-alarm-sound'
const BEEP_EVERY_MS = 4000
const FREQUENCIES = [880, 660]
const BEEP_SECONDS = 0.35
const INTERACTIONS = ['click', 'keydown'] as const

/** Whether this browser plays a sound during an emergency. */
export const isSoundOn = ref(localStorage.getItem(STORAGE_KEY) === 'on')
watch(isSoundOn, (isOn) => localStorage.setItem(STORAGE_KEY, isOn ? 'on' : 'off'))

/** The browser allows no sound before the user has interacted with the page, for example after a reload. */
export const isSoundBlocked = ref(false)

const beep = (audio: AudioContext): void => {
  for (const [index, frequency] of FREQUENCIES.entries()) {
    const tone = audio.createOscillator()
    const volume = audio.createGain()
    volume.gain.value = 0.2
    tone.frequency.value = frequency
    tone.connect(volume).connect(audio.destination)
    const start = audio.currentTime + index * BEEP_SECONDS
    tone.start(start)
    tone.stop(start + BEEP_SECONDS)
  }
}

/** Plays a two-tone sound while an emergency is active and the sound is on. */
export const useAlarmSound = (isActive: Ref<boolean>): void => {
  let audio: AudioContext | null = null
  let timer: ReturnType<typeof setInterval> | undefined
  // A context that was not allowed to start continues after the next interaction.
  const resume = (): unknown => audio?.state === 'suspended' && audio.resume().catch(() => undefined)
  const stop = (): void => {
    clearInterval(timer)
    void audio?.close()
    audio = null
    isSoundBlocked.value = false
  }
  watch(
    [isActive, isSoundOn],
    ([active, isOn]) => {
      stop()
      if (!active || !isOn) return
      const opened = new AudioContext()
      audio = opened
      const play = (): void => {
        // The context is suspended while the browser allows no sound.
        isSoundBlocked.value = opened.state === 'suspended'
        if (opened.state === 'running') beep(opened)
      }
      opened.onstatechange = () => audio === opened && play()
      play()
      timer = setInterval(play, BEEP_EVERY_MS)
    },
    { immediate: true }
  )
  for (const event of INTERACTIONS) addEventListener(event, resume)
  onScopeDispose(() => {
    for (const event of INTERACTIONS) removeEventListener(event, resume)
    stop()
  })
}
