import type { FastifyReply } from 'fastify'
import { Html, html } from '../api-docs/html.js'

/** A page that says what happened and what can be done about it. It needs no script, and asks nobody for anything. */
export interface Page {
  readonly status: number
  readonly title: string
  readonly text: readonly string[]
  /** Where to go from here: words and address. */
  readonly links: readonly (readonly [words: string, address: string])[]
  readonly headers?: Readonly<Record<string, string>>
}

export const OIDC_PAGE_STYLE = `
:root { color-scheme: light dark; font: 1.0625rem/1.5 system-ui, sans-serif }
body { max-width: 34rem; margin: 15vh auto 0; padding: 0 1.25rem }
h1 { font-size: 1.5rem; line-height: 1.25 }
a { display: inline-block; margin-right: 1.25rem; padding: .5rem 0 }
small { opacity: .7 }
`

export const sendPage = (reply: FastifyReply, { status, title, text, links, headers = {} }: Page): FastifyReply =>
  reply
    .code(status)
    .headers(headers)
    .header('cache-control', 'no-store')
    .header('content-type', 'text/html; charset=utf-8')
    .send(
      html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${new Html(OIDC_PAGE_STYLE)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${text.map((line) => html`<p>${line}</p>\n`)}<p>${links.map(([words, address]) => html`<a href="${address}">${words}</a> `)}</p>
<p><small>If you ask for help, mention ${reply.request.id}.</small></p>
</main>
</body>
</html>
`.text
    )
