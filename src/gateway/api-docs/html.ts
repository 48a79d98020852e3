/** Text that is HTML already. Nothing else reaches the page unescaped. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Part = Html | string | number | null | readonly Part[]

/** A template whose holes are escaped, each as what it is; null leaves a hole empty. */
export const html = (texts: TemplateStringsArray, ...parts: readonly Part[]): Html =>
  new Html(texts.map((text, index) => text + rendered(parts[index] ?? null)).join(''))

const rendered = (part: Part): string => {
  if (part === null) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'object') return part.map(rendered).join('')
  return escaped(String(part))
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;'
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')

/** The little of Markdown that our own texts use: paragraphs, lists and `code`. */
export const prose = (text: string): Html => html`${text.split(/\n{2,}/).map(block)}`

const block = (text: string): Html => {
  const lines = text.split('\n')
  if (!lines.every((line) => line.startsWith('- '))) return html`<p>${inline(text)}</p>`
  return html`<ul>${lines.map((line) => html`<li>${inline(line.slice(2))}</li>`)}</ul>`
}

export const inline = (text: string): Html =>
  html`${text.split('`').map((piece, index) => (index % 2 === 1 ? html`<code>${piece}</code>` : piece))}`
