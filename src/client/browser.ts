// The browser APIs that the library uses. They are declared here instead of taken from the DOM types, so that the library
// compiles together with server programs and tests can replace each of them.

export interface XhrUploadEvent {
  readonly lengthComputable: boolean
  readonly loaded: number
  readonly total: number
}

/** The used part of XMLHttpRequest, which reports upload progress; fetch does not. */
export interface Xhr {
  readonly status: number
  readonly responseText: string
  readonly upload: { onprogress: ((event: XhrUploadEvent) => void) | null }
  onload: (() => void) | null
  onerror: (() => void) | null
  onabort: (() => void) | null
  ontimeout: (() => void) | null
  open(method: string, url: string): void
  setRequestHeader(name: string, value: string): void
  getResponseHeader(name: string): string | null
  send(body: FormData): void
  abort(): void
}

interface BrowserGlobals {
  readonly document?: { readonly cookie: string }
  readonly XMLHttpRequest?: new () => unknown
  readonly location?: { assign(url: string): void }
  readonly innerWidth?: number
  readonly innerHeight?: number
}

// A server program compiles this file too, and has none of these globals.
const browser = globalThis as unknown as BrowserGlobals

export const documentCookies = (): string => browser.document?.cookie ?? ''

export const newXhr = (): Xhr => {
  if (browser.XMLHttpRequest === undefined) throw new Error('uploads need an XMLHttpRequest')
  // The DOM's handlers take an event argument, which `Xhr` leaves out.
  return new browser.XMLHttpRequest() as Xhr
}

export const navigateTo = (url: string): void => browser.location?.assign(url)

export const windowSize = (): { readonly width: number; readonly height: number } => ({
  width: browser.innerWidth ?? 0,
  height: browser.innerHeight ?? 0
})
