import { type HttpResponse, type Message, send } from '../../helper/http.js'

interface JarCookie {
  readonly host: string
  readonly name: string
  readonly path: string
  readonly value: string
  /** The attributes of the Set-Cookie header. */
  readonly attributes: string
}

export interface Visit extends HttpResponse {
  /** The last address. */
  readonly url: URL
  /** All requested addresses. */
  readonly visited: readonly string[]
}

const MAX_REDIRECTS = 12

/** A browser without scripts: stores cookies, follows redirects, submits forms. */
export class TestBrowser {
  #cookies: JarCookie[] = []
  /** The real address of each host name, so that several gateways can share one name. */
  readonly #hosts: Map<string, string>

  constructor(hosts: Iterable<readonly [host: string, base: string]> = []) {
    this.#hosts = new Map(hosts)
  }

  /** Changes the real address of a host name. */
  move(host: string, base: string): void {
    this.#hosts.set(host, base)
  }

  /** Sends one request without following redirects. */
  async request(url: string | URL, { headers, ...message }: Message = {}): Promise<HttpResponse> {
    const target = new URL(url)
    const cookie = this.cookieHeader(target)
    const base = this.#hosts.get(target.host) ?? target.origin
    const response = await send(base, `${target.pathname}${target.search}`, {
      ...message,
      headers: { host: target.host, ...(cookie !== '' && { cookie }), ...headers }
    })
    for (const line of response.headers['set-cookie'] ?? []) this.#store(target.host, line)
    return response
  }

  async visit(url: string | URL, message: Message = {}, until: (url: URL) => boolean = () => false): Promise<Visit> {
    const visited: string[] = []
    let target = new URL(url)
    let next = message
    for (let count = 0; count < MAX_REDIRECTS; count += 1) {
      visited.push(target.href)
      const response = await this.request(target, next)
      const { location } = response.headers
      if (location === undefined || response.status < 300 || response.status > 399)
        return { ...response, url: target, visited }
      target = new URL(location, target)
      if (until(target)) return { ...response, url: target, visited: [...visited, target.href] }
      next = {}
    }
    throw new Error(`too many redirects: ${visited.join(' -> ')}`)
  }

  /** Submits a form and follows redirects. */
  submit(url: string | URL, fields: Readonly<Record<string, string>>, until?: (url: URL) => boolean): Promise<Visit> {
    const message: Message = {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields).toString()
    }
    return this.visit(url, message, until)
  }

  cookie(host: string, name: string): string | undefined {
    return this.#cookies.find((cookie) => cookie.host === host && cookie.name === name)?.value
  }

  attributes(host: string, name: string): string | undefined {
    return this.#cookies.find((cookie) => cookie.host === host && cookie.name === name)?.attributes
  }

  names(host: string): string[] {
    return this.#cookies
      .filter((cookie) => cookie.host === host)
      .map(({ name }) => name)
      .sort()
  }

  /** Sets a cookie, or removes it if the value is null. */
  setCookie(host: string, name: string, value: string | null, path = '/'): void {
    this.#cookies = this.#cookies.filter((cookie) => !(cookie.host === host && cookie.name === name))
    if (value !== null) this.#cookies.push({ host, name, path, value, attributes: '' })
  }

  cookieHeader({ host, pathname }: URL): string {
    return this.#cookies
      .filter((cookie) => cookie.host === host && isBelow(pathname, cookie.path))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ')
  }

  #store(host: string, line: string): void {
    const [pair = '', ...attributes] = line.split(';').map((part) => part.trim())
    const name = pair.slice(0, pair.indexOf('='))
    const value = pair.slice(pair.indexOf('=') + 1)
    const attribute = (name: string): string | undefined =>
      attributes.find((one) => one.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1)
    const path = attribute('path') ?? '/'
    const expires = attribute('expires')
    const isExpired = attribute('max-age') === '0' || (expires !== undefined && Date.parse(expires) <= Date.now())
    this.#cookies = this.#cookies.filter(
      (cookie) => !(cookie.host === host && cookie.name === name && cookie.path === path)
    )
    if (!isExpired) this.#cookies.push({ host, name, path, value, attributes: attributes.join('; ') })
  }
}

const isBelow = (path: string, folder: string): boolean =>
  folder === '/' || path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
