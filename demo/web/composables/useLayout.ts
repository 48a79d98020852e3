import { ref } from 'vue'
import type { Layout } from '../../../src/client/guards/visit.js'

const layout = ref<Layout>('default')

/** Which of the two layouts is shown: the device guard decides on every navigation. */
export const useLayout = () => ({
  layout,
  setLayout: (decided: Layout): void => {
    layout.value = decided
  }
})
