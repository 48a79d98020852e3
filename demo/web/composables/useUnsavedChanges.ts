import { onScopeDispose, type Ref } from 'vue'
import { onBeforeRouteLeave } from 'vue-router'

/** Asks before the page is left while there are unsaved changes. */
export const useUnsavedChanges = (hasChanges: Ref<boolean>): void => {
  onBeforeRouteLeave(() => !hasChanges.value || window.confirm('Leave the page? Unsaved changes are lost.'))
  // The browser shows its own text.
  const confirmUnload = (event: BeforeUnloadEvent): void => {
    if (hasChanges.value) event.preventDefault()
  }
  addEventListener('beforeunload', confirmUnload)
  onScopeDispose(() => removeEventListener('beforeunload', confirmUnload))
}
