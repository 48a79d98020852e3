import type { FastifyReply, FastifyRequest } from 'fastify'
import { escapeHtml } from '../http/html.js'

type Link = readonly [label: string, address: string]

/** An HTML page that explains an outcome and offers links. It has no script and loads nothing. */
export interface HtmlPage {
  readonly status: number
  readonly title: string
  readonly text: readonly string[]
  /** Shown as a list. */
  readonly choices?: readonly Link[]
  readonly links: readonly Link[]
  readonly headers?: Readonly<Record<string, string>>
}

/** The Content-Security-Policy allows this style by its hash. */
export const OIDC_PAGE_STYLE = `
:root { color-scheme: light dark; font: 1.0625rem/1.5 system-ui, sans-serif }
body { max-width: 34rem; margin: 15vh auto 0; padding: 0 1.25rem }
h1 { font-size: 1.5rem; line-height: 1.25 }
a { display: inline-block; margin-right: 1.25rem; padding: .5rem 0 }
small { opacity: .7 }
`

export const sendPage = (reply: FastifyReply, page: HtmlPage): FastifyReply =>
  reply
    .code(page.status)
    .headers(page.headers ?? {})
    .header('cache-control', 'no-store')
    .header('content-type', 'text/html; charset=utf-8')
    .send(htmlOf(page, reply.request.id))

const htmlOf = ({ title, text, choices = [], links }: HtmlPage, requestId: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
<style>${OIDC_PAGE_STYLE}</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
${text.map((line) => `<p>${escapeHtml(line)}</p>\n`).join('')}${listOf(choices)}<p>${links.map((link) => `${anchorOf(link)} `).join('')}</p>
<p><small>If you ask for help, mention ${escapeHtml(requestId)}.</small></p>
</main>
</body>
</html>
`

const listOf = (choices: readonly Link[]): string =>
  choices.length === 0 ? '' : `<ul>\n${choices.map((link) => `<li>${anchorOf(link)}</li>\n`).join('')}</ul>\n`

const anchorOf = ([label, address]: Link): string => `<a href="${escapeHtml(address)}">${escapeHtml(label)}</a>`

export const redirect = (reply: FastifyReply, address: string): FastifyReply =>
  reply.header('cache-control', 'no-store').redirect(address, 303)

/** The unmodified query. Fastify's own parser would merge repeated parameters, which must be rejected. */
export const queryOf = ({ url }: FastifyRequest): URLSearchParams => {
  const start = url.indexOf('?')
  return new URLSearchParams(start === -1 ? '' : url.slice(start + 1))
}
