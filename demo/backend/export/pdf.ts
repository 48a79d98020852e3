import type { Fields } from '../world.js'
import { textOf } from './csv.js'

export interface PdfColumn {
  readonly field: string
  readonly title: string
  /** In points; the page is 842 wide, with a margin of 40 on both sides. */
  readonly width: number
}

const PAGE = { width: 842, height: 595 } as const
const MARGIN = 40
const LINE = 14
const FONT_SIZE = 9
const ROWS_PER_PAGE = Math.floor((PAGE.height - 2 * MARGIN - 3 * LINE) / LINE)
/** Of Helvetica's letters, on average; what is longer than its column is cut off. */
const LETTER_WIDTH = FONT_SIZE * 0.52

/** A table as a PDF 1.4 file: a few objects, a font that every reader has, and where each object begins. */
export const pdfTable = (title: string, columns: readonly PdfColumn[], rows: readonly Fields[]): Buffer => {
  const pages = Array.from({ length: Math.max(1, Math.ceil(rows.length / ROWS_PER_PAGE)) }, (_, page) =>
    pageContent(title, columns, rows.slice(page * ROWS_PER_PAGE, (page + 1) * ROWS_PER_PAGE), page + 1)
  )
  // 1 is the catalogue, 2 the list of pages, 3 and 4 the fonts; then each page and its content.
  const pageNumber = (index: number): number => 5 + 2 * index
  const fonts = '/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >>'
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${pages.length} /Kids [${pages.map((_, index) => `${pageNumber(index)} 0 R`).join(' ')}] >>`,
    font('Helvetica'),
    font('Helvetica-Bold'),
    ...pages.flatMap((content, index) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${PAGE.width} ${PAGE.height}] ${fonts} ` +
        `/Contents ${pageNumber(index) + 1} 0 R >>`,
      `<< /Length ${content.length} >>\nstream\n${content}\nendstream`
    ])
  ]
  return Buffer.from(file(objects), 'latin1')
}

const font = (name: string): string => `<< /Type /Font /Subtype /Type1 /BaseFont /${name} /Encoding /WinAnsiEncoding >>`

const pageContent = (title: string, columns: readonly PdfColumn[], rows: readonly Fields[], page: number): string => {
  const top = PAGE.height - MARGIN
  const lefts = columns.map((_, index) => columns.slice(0, index).reduce((left, { width }) => left + width, MARGIN))
  const cells = (line: number, fontName: string, contentOf: (column: PdfColumn) => string): string[] =>
    columns.map((column, index) =>
      text(fit(contentOf(column), column.width), lefts[index] ?? MARGIN, top - line * LINE, fontName)
    )
  return [
    text(title, MARGIN, top, 'F2', 13),
    text(`Page ${page}`, PAGE.width - MARGIN - 40, top, 'F1'),
    ...cells(2, 'F2', (column) => column.title),
    ...rows.flatMap((row, index) => cells(3 + index, 'F1', ({ field }) => textOf(row[field])))
  ].join('\n')
}

const text = (content: string, x: number, y: number, fontName: string, size = FONT_SIZE): string =>
  `BT /${fontName} ${size} Tf ${x} ${y} Td (${escaped(content)}) Tj ET`

const fit = (content: string, width: number): string => content.slice(0, Math.floor(width / LETTER_WIDTH) - 1)

/** The font's own encoding has the letters of western Europe; a question mark stands for all others. */
const escaped = (content: string): string => content.replace(/[^\x20-\x7e\xa0-\xff]/g, '?').replace(/[\\()]/g, '\\$&')

/** Every character is one byte, so that places in the text are places in the file. */
const file = (objects: readonly string[]): string => {
  let body = '%PDF-1.4\n%\xe2\xe3\xcf\xd3\n'
  const places = objects.map((object, index) => {
    const place = body.length
    body += `${index + 1} 0 obj\n${object}\nendobj\n`
    return place
  })
  const entries = places.map((place) => `${String(place).padStart(10, '0')} 00000 n \n`)
  const size = objects.length + 1
  return (
    `${body}xref\n0 ${size}\n0000000000 65535 f \n${entries.join('')}` +
    `trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${body.length}\n%%EOF\n`
  )
}
