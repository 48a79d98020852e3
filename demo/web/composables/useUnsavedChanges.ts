import { onScopeDispose, type Ref, watch } from 'vue'

/** The forms of the page with input that is not saved. */
const changed = new Set<symbol>()

export const hasUnsavedChanges = (): boolean => changed.size > 0

/** The user does not want the input any more, so that nothing asks about it again. */
export const discardUnsavedChanges = (): void => changed.clear()

/** Asks before the input of a dialog is lost. Returns whether the dialog may be closed. */
export const mayCloseForm = (): boolean => !hasUnsavedChanges() || window.confirm('Discard the changes in this form?')

/** Asks before unsaved changes are lost. Returns whether the page may be left. */
export const mayLosePage = (): boolean => {
  if (hasUnsavedChanges() && !window.confirm('Leave the page? Unsaved changes are lost.')) return false
  discardUnsavedChanges()
  return true
}

/** The page asks before it is left while a form has changes, and keeps the form if the session ends. */
export const useUnsavedChanges = (hasChanges: Ref<boolean>): void => {
  const form = Symbol('form')
  watch(hasChanges, (isChanged) => void (isChanged ? changed.add(form) : changed.delete(form)), {
    immediate: true,
    flush: 'sync'
  })
  onScopeDispose(() => changed.delete(form))
}

// The browser shows its own text.
addEventListener('beforeunload', (event) => {
  if (hasUnsavedChanges()) event.preventDefault()
})
