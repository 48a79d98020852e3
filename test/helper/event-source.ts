/** The part of a browser's EventSource that the official client uses. Node.js 20 has none. */
export class EventSource {
  onopen: (() => void) | null = null
  onmessage: ((event: { readonly data: string }) => void) | null = null
  onerror: ((error: unknown) => void) | null = null
  readonly #abort = new AbortController()

  constructor(url: string) {
    void this.#read(url)
  }

  close(): void {
    this.#abort.abort()
  }

  async #read(url: string): Promise<void> {
    try {
      const { body, status } = await fetch(url, { signal: this.#abort.signal })
      if (status !== 200 || body === null) throw new Error(`status ${status}`)
      this.onopen?.()
      let text = ''
      for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
        const events = (text + chunk.replaceAll('\r\n', '\n')).split('\n\n')
        text = events.pop() ?? ''
        for (const event of events) this.#dispatch(event)
      }
      throw new Error('the stream ended')
    } catch (error) {
      if (!this.#abort.signal.aborted) this.onerror?.(error)
    }
  }

  #dispatch(event: string): void {
    const lines = event.split('\n').filter((line) => line.startsWith('data: '))
    if (lines.length > 0) this.onmessage?.({ data: lines.map((line) => line.slice('data: '.length)).join('\n') })
  }
}
