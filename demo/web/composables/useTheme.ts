import { computed, ref, watchEffect } from 'vue'

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'gatehouse-theme'
const dark = matchMedia('(prefers-color-scheme: dark)')
const systemIsDark = ref(dark.matches)
dark.addEventListener('change', ({ matches }) => {
  systemIsDark.value = matches
})

const stored = localStorage.getItem(KEY)
const theme = ref<Theme>(stored === 'light' || stored === 'dark' ? stored : 'system')
const isDark = computed(() => (theme.value === 'system' ? systemIsDark.value : theme.value === 'dark'))

watchEffect(() => {
  if (theme.value === 'system') {
    delete document.documentElement.dataset.theme
    localStorage.removeItem(KEY)
  } else {
    document.documentElement.dataset.theme = theme.value
    localStorage.setItem(KEY, theme.value)
  }
})

/** The chosen theme, and whether that comes to dark. */
export const useTheme = () => ({
  theme,
  isDark,
  toggle: () => {
    theme.value = isDark.value ? 'light' : 'dark'
  }
})
