import { onBeforeUnmount, onMounted } from 'vue'

/** The elements from the focused one up to the document. */
const pathOf = (element: Element | null): readonly Element[] =>
  element === null ? [] : [element, ...pathOf(element.parentElement)]

/**
 * Keeps the keyboard focus on the page when the focused element disappears, such as the button of a deleted row. The focus
 * moves to the nearest remaining list, table or dialog, or else to the heading of the page.
 */
export const useFocusRecovery = (): void => {
  let path: readonly Element[] = []
  const remember = ({ target }: FocusEvent): void => {
    path = target instanceof Element ? pathOf(target) : []
  }
  // Browsers differ in whether an element that is removed loses the focus with an event.
  const forget = ({ target }: FocusEvent): void =>
    queueMicrotask(() => {
      if (target === path[0] && path[0]?.isConnected) path = []
    })
  const observer = new MutationObserver(() => {
    const [focused] = path
    if (focused === undefined || focused.isConnected || document.activeElement !== document.body) return
    const place = path
      .find((element) => element.isConnected)
      ?.closest<HTMLElement>('[tabindex]:not(main), dialog[open]')
    path = []
    const target = place ?? document.querySelector<HTMLElement>('main h1')
    target?.focus({ preventScroll: true })
  })

  onMounted(() => {
    document.addEventListener('focusin', remember)
    document.addEventListener('focusout', forget)
    observer.observe(document.body, { childList: true, subtree: true })
  })
  onBeforeUnmount(() => {
    document.removeEventListener('focusin', remember)
    document.removeEventListener('focusout', forget)
    observer.disconnect()
  })
}
