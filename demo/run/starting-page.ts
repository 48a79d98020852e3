import { once } from 'node:events'
import { createServer, type Server } from 'node:http'

const HEADER = 'x-gatehouse-starting'

/** Polls, because a page that reloads itself would show an error of the browser at the moment when the gateway takes over. */
const SCRIPT = `setInterval(async () => {
  try {
    const response = await fetch(location.href, { cache: 'no-store' })
    if (!response.headers.has('${HEADER}')) location.reload()
    else document.querySelector('ul').innerHTML = new DOMParser().parseFromString(await response.text(), 'text/html').querySelector('ul').innerHTML
  } catch {}
}, 1000)`

const pageOf = (lines: readonly string[]): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Starting · Gatehouse</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem}</style></head>
<body><main><h1>Gatehouse is starting</h1><p>This page opens the application as soon as every part answers.</p>
<ul>${lines.map((line) => `<li>${line}</li>`).join('')}</ul></main><script>${SCRIPT}</script></body></html>`

/** Answers at the address of the gateway until the gateway takes over: 503 with the steps so far. */
export class StartingPage {
  readonly #server: Server

  /** @param lines the steps, which are texts of this program. */
  constructor(lines: () => readonly string[]) {
    this.#server = createServer((_request, response) => {
      const headers = { [HEADER]: 'true', 'retry-after': '2', 'cache-control': 'no-store', connection: 'close' }
      response.writeHead(503, { 'content-type': 'text/html; charset=utf-8', ...headers }).end(pageOf(lines()))
    })
  }

  async listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }
}
