/** Time for the browser to start saving. Safari reads the URL after the click has returned. */
const REVOKE_AFTER_MS = 60_000

/** Saves a file as a download of the browser. Unlike a link to the backend, it is only called for a successful response. */
export const saveFile = (file: File): void => {
  const url = URL.createObjectURL(file)
  const link = document.createElement('a')
  link.href = url
  link.download = file.name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_AFTER_MS)
}
