import { setImmediate } from 'node:timers/promises'
import PDFDocument from 'pdfkit'
import type { Fields } from '../world.js'
import { textOf } from './csv.js'
import { loadTypesetter } from './fonts.js'
import { type Line, linesOf, shownText, type Typesetter } from './text-lines.js'
import { timeText } from './time-text.js'

export interface PdfColumn {
  readonly field: string
  readonly title: string
  /** The part of the page's width. */
  readonly width: number
}

/** A table and what its header says about it. */
export interface PdfTable {
  readonly site: string
  readonly title: string
  /** Describes which rows are included; empty if all are. */
  readonly filter: string
  readonly at: Date
  readonly timeZone: string
  readonly columns: readonly PdfColumn[]
  readonly rows: readonly Fields[]
}

// In points, on A4 in landscape format.
const MARGIN = 40
const FONT_SIZE = 9
const TITLE_SIZE = 14
const LINE_HEIGHT = 14
const CELL_PADDING = 4
const FOOTER_HEIGHT = 20

const TEXT = '#1b2429'
const MUTED = '#54626b'
const RULE = '#dbe1e5'

/** Writes a table as a PDF document with a header and a page number on each page. Long texts wrap. */
export const pdfTable = async (table: PdfTable): Promise<Buffer> => {
  const { site, at, columns, rows } = table
  const info = { Title: titleOf(table), Author: site, CreationDate: at, Creator: 'Gatehouse' }
  const document = new PDFDocument({
    size: 'A4',
    layout: 'landscape',
    margin: MARGIN,
    bufferPages: true,
    lang: 'en-GB',
    displayTitle: true,
    info
  })
  const chunks: Buffer[] = []
  document.on('data', (chunk: Buffer) => chunks.push(chunk))
  const ended = new Promise((resolve) => document.on('end', resolve))

  const cells = rows.map((row) => columns.map(({ field }) => textOf(row[field])))
  const head = [titleOf(table), summaryOf(table), pageText(0, 123_456_789), ...columns.map((column) => column.title)]
  const page = new TablePage(document, table, await loadTypesetter(document, [...head, ...cells.flat()].map(shownText)))
  for (const row of cells) {
    const isNewPage = page.addRow(row)
    // Other requests are served between two pages.
    if (isNewPage) await setImmediate()
  }
  page.numberPages()
  document.end()
  await ended
  return Buffer.concat(chunks)
}

/** Draws rows from the top of the page, and starts a page when one is full. */
class TablePage {
  readonly #document: PDFKit.PDFDocument
  readonly #table: PdfTable
  readonly #typesetter: Typesetter
  readonly #width: number
  readonly #bottom: number
  #y = 0

  constructor(document: PDFKit.PDFDocument, table: PdfTable, typesetter: Typesetter) {
    this.#document = document
    this.#table = table
    this.#typesetter = typesetter
    this.#width = document.page.width - 2 * MARGIN
    this.#bottom = document.page.height - MARGIN - FOOTER_HEIGHT
    this.#drawHead()
  }

  /** Returns whether it is the first row of a page. */
  addRow(texts: readonly string[]): boolean {
    const cells = this.#cells(texts)
    const isFull = this.#y + heightOf(cells) > this.#bottom
    if (isFull) {
      this.#document.addPage()
      this.#drawHead()
    }
    this.#drawCells(cells, TEXT)
    return isFull
  }

  numberPages(): void {
    const { count } = this.#document.bufferedPageRange()
    for (let page = 0; page < count; page += 1) {
      this.#document.switchToPage(page)
      const [line] = this.#lines(pageText(page, count), this.#width)
      if (line) this.#drawLine(line, MARGIN + this.#width - line.width, this.#bottom + FOOTER_HEIGHT, MUTED)
    }
  }

  #drawHead(): void {
    this.#y = MARGIN
    this.#document.fontSize(TITLE_SIZE)
    this.#drawParagraph(titleOf(this.#table), TEXT, TITLE_SIZE * 1.5)
    this.#document.fontSize(FONT_SIZE)
    this.#drawParagraph(summaryOf(this.#table), MUTED, LINE_HEIGHT)
    this.#y += LINE_HEIGHT / 2
    this.#drawCells(this.#cells(this.#table.columns.map(({ title }) => title)), MUTED)
  }

  #drawParagraph(text: string, colour: string, lineHeight: number): void {
    for (const line of this.#lines(text, this.#width)) {
      this.#drawLine(line, MARGIN, this.#y + lineHeight / 1.4, colour)
      this.#y += lineHeight
    }
  }

  #lines(text: string, width: number): Line[] {
    return linesOf(this.#typesetter, text, width)
  }

  #cells(texts: readonly string[]): Line[][] {
    return texts.map((text, index) => this.#lines(text, this.#columnWidth(index) - 2 * CELL_PADDING))
  }

  #columnWidth(index: number): number {
    return (this.#table.columns[index]?.width ?? 0) * this.#width
  }

  #drawCells(cells: readonly (readonly Line[])[], colour: string): void {
    let x = MARGIN
    for (const [index, lines] of cells.entries()) {
      for (const [row, line] of lines.entries())
        this.#drawLine(line, x + CELL_PADDING, this.#y + CELL_PADDING + row * LINE_HEIGHT + FONT_SIZE, colour)
      x += this.#columnWidth(index)
    }
    this.#y += heightOf(cells)
    this.#document
      .moveTo(MARGIN, this.#y)
      .lineTo(MARGIN + this.#width, this.#y)
      .lineWidth(0.5)
      .strokeColor(RULE)
      .stroke()
  }

  /** `y` is the baseline. */
  #drawLine({ runs }: Line, x: number, y: number, colour: string): void {
    let left = x
    this.#document.fillColor(colour)
    for (const { font, text, width } of runs) {
      // With an empty list of features, as when it was measured.
      this.#document.font(font).text(text, left, y, { lineBreak: false, baseline: 'alphabetic', features: [] })
      left += width
    }
  }
}

const heightOf = (cells: readonly (readonly Line[])[]): number =>
  Math.max(1, ...cells.map(({ length }) => length)) * LINE_HEIGHT + CELL_PADDING

const titleOf = ({ site, title }: PdfTable): string => [site, title].filter(Boolean).join(' – ')

const summaryOf = (table: PdfTable): string => {
  const { filter, rows, at, timeZone } = table
  const count = `${rows.length} ${rows.length === 1 ? 'row' : 'rows'}`
  return `${timeText(at, timeZone)} · Filter: ${filter || 'none'} · ${count}`
}

const pageText = (index: number, count: number): string => `Page ${index + 1} of ${count}`
