/** The cookies of one browser, for one site. */
export interface CookieJar {
  /** The Cookie header of a request. */
  readonly header: string
  /** `document.cookie`: without httpOnly cookies. */
  readonly readable: string
  keep(setCookies: readonly string[]): void
  set(name: string, value: string): void
  delete(name: string): void
  /** Sends the cookies with a request and stores those of the response, as a browser does. */
  readonly fetch: typeof globalThis.fetch
}

interface StoredCookie {
  readonly text: string
  readonly httpOnly: boolean
}

export const cookieJar = (): CookieJar => {
  const cookies = new Map<string, StoredCookie>()
  const headerOf = (cookies: readonly StoredCookie[]): string => cookies.map(({ text }) => text).join('; ')

  const jar: CookieJar = {
    get header() {
      return headerOf([...cookies.values()])
    },
    get readable() {
      return headerOf([...cookies.values()].filter(({ httpOnly }) => !httpOnly))
    },
    keep: (setCookies) => {
      for (const setCookie of setCookies) {
        const [text = '', ...attributes] = setCookie.split(';').map((part) => part.trim())
        const name = text.slice(0, text.indexOf('='))
        const isExpired = attributes.some((attribute) => /^max-age=0$/i.test(attribute))
        if (isExpired) cookies.delete(name)
        else cookies.set(name, { text, httpOnly: attributes.some((attribute) => /^httponly$/i.test(attribute)) })
      }
    },
    set: (name, value) => void cookies.set(name, { text: `${name}=${encodeURIComponent(value)}`, httpOnly: false }),
    delete: (name) => void cookies.delete(name),
    fetch: async (input, init) => {
      const headers = new Headers(init?.headers)
      if (jar.header !== '') headers.set('cookie', jar.header)
      const response = await fetch(input, { ...init, headers })
      jar.keep(response.headers.getSetCookie())
      return response
    }
  }
  return jar
}
