import type { Fields } from '../world.js'
import { textOf } from './csv.js'

export interface PdfColumn {
  readonly field: string
  readonly title: string
  /** The width in characters of a monospaced font; a line holds 140. Longer text is truncated. */
  readonly width: number
}

const ROWS_PER_PAGE = 32

/** Writes a table as a PDF 1.4 file with a standard font. */
export const pdfTable = (title: string, columns: readonly PdfColumn[], rows: readonly Fields[]): Buffer => {
  const line = (cellOf: (column: PdfColumn) => string): string =>
    columns
      .map((column) =>
        cellOf(column)
          .slice(0, column.width - 1)
          .padEnd(column.width)
      )
      .join('')
  const heading = line((column) => column.title)
  const lines = rows.map((row) => line(({ field }) => textOf(row[field])))
  const pages = Array.from({ length: Math.max(1, Math.ceil(lines.length / ROWS_PER_PAGE)) }, (_, page) =>
    contentOf([
      `${title}, page ${page + 1}`,
      '',
      heading,
      ...lines.slice(page * ROWS_PER_PAGE, (page + 1) * ROWS_PER_PAGE)
    ])
  )
  // Objects: 1 catalogue, 2 page list, 3 font, then each page and its content.
  const kids = pages.map((_, index) => `${4 + 2 * index} 0 R`)
  return file([
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${pages.length} /Kids [${kids.join(' ')}] /MediaBox [0 0 842 595] ` +
      '/Resources << /Font << /F1 3 0 R >> >> >>',
    '<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>',
    ...pages.flatMap((content, index) => [
      `<< /Type /Page /Parent 2 0 R /Contents ${5 + 2 * index} 0 R >>`,
      `<< /Length ${content.length} >>\nstream\n${content}\nendstream`
    ])
  ])
}

/** Lines of 14 points from the upper left corner. */
const contentOf = (lines: readonly string[]): string =>
  `BT /F1 9 Tf 14 TL 40 545 Td\n${lines.map((line) => `(${escaped(line)}) Tj T*`).join('\n')}\nET`

/** The font's encoding has the letters of western Europe; others become question marks. */
const escaped = (text: string): string => text.replace(/[^\x20-\x7e\xa0-\xff]/g, '?').replace(/[\\()]/g, '\\$&')

/** One byte per character, so that text offsets are file offsets. */
const file = (objects: readonly string[]): Buffer => {
  let body = '%PDF-1.4\n%\xe2\xe3\xcf\xd3\n'
  const entries = objects.map((object, index) => {
    const entry = `${String(body.length).padStart(10, '0')} 00000 n \n`
    body += `${index + 1} 0 obj\n${object}\nendobj\n`
    return entry
  })
  const size = objects.length + 1
  const end = `trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${body.length}\n%%EOF\n`
  return Buffer.from(`${body}xref\n0 ${size}\n0000000000 65535 f \n${entries.join('')}${end}`, 'latin1')
}
