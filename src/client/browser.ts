// The few things of a browser that are used by name. They are described here rather than taken from the DOM's types, so that
// this library is checked together with programs that have no DOM, and every one of them can be replaced.

export interface XhrUploadEvent {
  readonly lengthComputable: boolean
  readonly loaded: number
  readonly total: number
}

/** What is used of an XMLHttpRequest: the only way to see how far an upload has come. */
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

const browser = globalThis as unknown as BrowserGlobals

export const documentCookies = (): string => browser.document?.cookie ?? ''

export const newXhr = (): Xhr => {
  if (browser.XMLHttpRequest === undefined) throw new Error('uploads need an XMLHttpRequest')
  // The DOM's own handlers take an event that is of no interest here.
  return new browser.XMLHttpRequest() as Xhr
}

export const leaveTo = (url: string): void => browser.location?.assign(url)

export const windowSize = (): { readonly width: number; readonly height: number } => ({
  width: browser.innerWidth ?? 0,
  height: browser.innerHeight ?? 0
})
