import { isObject } from '../../shared/is-object.js'
import { escapeHtml } from '../http/html.js'

/** Markup that is inserted into a page unchanged. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Part = Html | readonly Html[] | string | number

const textOf = (part: Part): string => {
  if (part instanceof Html) return part.text
  return typeof part === 'object' ? part.map(({ text }) => text).join('') : escapeHtml(String(part))
}

/** A template of markup. Inserted strings are escaped, so a description can contain anything. */
export const html = (markup: TemplateStringsArray, ...parts: readonly Part[]): Html =>
  new Html(markup.map((text, index) => `${index === 0 ? '' : textOf(parts[index - 1] ?? '')}${text}`).join(''))

export const NOTHING = new Html('')

export type Fields = Readonly<Record<string, unknown>>

/** The members of an object; none for any other value, because a description can contain anything. */
export const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {})

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** '' for any other value. */
export const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const withCode = (line: string): Html =>
  new Html(
    line
      .split(/`([^`]+)`/)
      .map((text, index) => (index % 2 === 1 ? `<code>${escapeHtml(text)}</code>` : escapeHtml(text)))
      .join('')
  )

/** The part of Markdown that descriptions use most: paragraphs, lists and code. Everything else is shown as it was written. */
export const proseOf = (description: unknown): Html => {
  const blocks = stringOf(description)
    .trim()
    .split(/\n\s*\n/)
  const rendered = blocks
    .filter((block) => block !== '')
    .map((block) => {
      const items = block.split(/^[-*] /m)
      if (items.length === 1) return html`<p>${withCode(block)}</p>`
      const [before = '', ...listed] = items
      const intro = before.trim() === '' ? NOTHING : html`<p>${withCode(before)}</p>`
      return html`${intro}<ul>${listed.map((item) => html`<li>${withCode(item.trim())}</li>`)}</ul>`
    })
  return html`${rendered}`
}

/** An id that can be used in an address. */
export const anchor = (kind: string, name: string): string => `${kind}-${name.replace(/[^\w.-]+/g, '-')}`
