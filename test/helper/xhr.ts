import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import type { Xhr, XhrUploadEvent } from '../../src/client/browser.js'
import type { CookieJar } from './cookie-jar.js'

const CHUNK_BYTES = 64 * 1024

/** The part of XMLHttpRequest that the client library uses, over a real socket. Sends the body in parts with progress events. */
export class TestXhr implements Xhr {
  status = 0
  responseText = ''
  readonly upload: { onprogress: ((event: XhrUploadEvent) => void) | null } = { onprogress: null }
  onload: (() => void) | null = null
  onerror: (() => void) | null = null
  onabort: (() => void) | null = null
  ontimeout: (() => void) | null = null
  readonly #jar: CookieJar
  readonly #headers = new Headers()
  #target = { method: '', url: '' }
  #response: IncomingMessage | null = null
  #request: ClientRequest | null = null
  #isAborted = false

  constructor(jar: CookieJar) {
    this.#jar = jar
  }

  open(method: string, url: string): void {
    this.#target = { method, url }
  }

  setRequestHeader(name: string, value: string): void {
    this.#headers.set(name, value)
  }

  getResponseHeader(name: string): string | null {
    const value = this.#response?.headers[name.toLowerCase()]
    return value === undefined ? null : String(value)
  }

  send(body: FormData): void {
    this.#transfer(body).then(
      () => this.onload?.(),
      () => (this.#isAborted ? this.onabort?.() : this.onerror?.())
    )
  }

  abort(): void {
    this.#isAborted = true
    this.#request?.destroy()
  }

  async #transfer(form: FormData): Promise<void> {
    const encoded = new Response(form)
    const bytes = Buffer.from(await encoded.arrayBuffer())
    const headers = {
      ...Object.fromEntries(this.#headers),
      cookie: this.#jar.header,
      'content-type': encoded.headers.get('content-type') ?? '',
      'content-length': bytes.length
    }
    const request = httpRequest(this.#target.url, { method: this.#target.method, headers, agent: false })
    this.#request = request
    const responded = new Promise<IncomingMessage>((resolve, reject) => {
      request.on('response', resolve)
      request.on('error', reject)
    })
    for (let sent = 0; sent < bytes.length; sent += CHUNK_BYTES) {
      const chunk = bytes.subarray(sent, sent + CHUNK_BYTES)
      request.write(chunk)
      this.upload.onprogress?.({ lengthComputable: true, loaded: sent + chunk.length, total: bytes.length })
    }
    request.end()

    const response = await responded
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk)
    this.#response = response
    this.#jar.keep(response.headers['set-cookie'] ?? [])
    this.status = response.statusCode ?? 0
    this.responseText = Buffer.concat(chunks).toString()
  }
}
