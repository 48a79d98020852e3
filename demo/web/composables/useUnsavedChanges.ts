import { onScopeDispose, type Ref, watch } from 'vue'

/** The forms of the page with input that is not saved. */
const changed = new Set<symbol>()

const confirmed = (question: string): boolean => changed.size === 0 || window.confirm(question)

/** Asks before the input of a dialog is lost. Returns whether the dialog may be closed. */
export const mayCloseForm = (): boolean => confirmed('Discard the changes in this form?')

/** Asks before unsaved changes are lost. Returns whether the page may be left. */
export const mayLosePage = (): boolean => {
  const mayLeave = confirmed('Leave the page? Unsaved changes are lost.')
  if (mayLeave) discardUnsavedChanges()
  return mayLeave
}

/** The page asks before it is left while a form has changes. */
export const useUnsavedChanges = (hasChanges: Ref<boolean>): void => {
  const form = Symbol('form')
  watch(hasChanges, (isChanged) => void (isChanged ? changed.add(form) : changed.delete(form)), {
    immediate: true,
    flush: 'sync'
  })
  onScopeDispose(() => changed.delete(form))
}

/** Nothing asks about the input any more. */
export const discardUnsavedChanges = (): void => changed.clear()

// The browser shows its own text.
addEventListener('beforeunload', (event) => {
  if (changed.size > 0) event.preventDefault()
})
