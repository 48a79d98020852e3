import type { Fields } from '../world.js'
import { textOf } from './csv.js'

interface PdfColumn {
  readonly field: string
  readonly title: string
  /** The part of the page's width. */
  readonly width: number
}

export interface PdfTable {
  readonly title: string
  readonly at: Date
  readonly columns: readonly PdfColumn[]
  readonly rows: readonly Fields[]
}

// In points, on A4 in landscape format.
const [WIDTH, HEIGHT, MARGIN] = [842, 595, 40]
const [FONT_SIZE, LINE_HEIGHT] = [9, 14]
const ROWS_PER_PAGE = Math.floor((HEIGHT - 3 * MARGIN) / LINE_HEIGHT) - 2
/** The average width of a character of Helvetica, for cutting texts that are too long. */
const CHARACTER_WIDTH = 0.53 * FONT_SIZE

/** The characters of WinAnsi beside Latin-1, from 0x80. */
const WIN_ANSI = '€\u0000‚ƒ„…†‡ˆ‰Š‹Œ\u0000Ž\u0000\u0000‘’“”•–—˜™š›œ\u0000žŸ'

/** The code of a character in the encoding of the font; a question mark for one that it does not have. */
const codeOf = (character: string): number => {
  const code = character.codePointAt(0) ?? 0
  const special = code === 0 ? -1 : WIN_ANSI.indexOf(character)
  if (special !== -1) return 0x80 + special
  return (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && code <= 0xff) ? code : 0x3f
}

/** A string of a PDF document, in hexadecimal digits. */
const pdfText = (text: string): string => `<${Buffer.from(Array.from(text.normalize('NFC'), codeOf)).toString('hex')}>`

const line = (text: string, x: number, y: number, size = FONT_SIZE): string =>
  `BT /F ${size} Tf ${x.toFixed(1)} ${y.toFixed(1)} Td ${pdfText(text)} Tj ET`

/** The text as far as it fits. */
const cut = (text: string, width: number): string => {
  const length = Math.max(1, Math.floor(width / CHARACTER_WIDTH))
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}

/** Writes a table as a PDF document in the standard font Helvetica, which readers have. Each row is one line. */
export const pdfTable = ({ title, at, columns, rows }: PdfTable): Buffer => {
  const count = Math.max(1, Math.ceil(rows.length / ROWS_PER_PAGE))
  const pages = Array.from({ length: count }, (_, page) => {
    const shown = rows.slice(page * ROWS_PER_PAGE, (page + 1) * ROWS_PER_PAGE)
    const texts = [
      columns.map((column) => column.title),
      ...shown.map((row) => columns.map(({ field }) => textOf(row[field])))
    ]
    const cells = texts.flatMap((cellTexts, index) => {
      let left = MARGIN
      return columns.map(({ width }, column) => {
        const [x, cell] = [left, width * (WIDTH - 2 * MARGIN)]
        left += cell
        return line(cut(cellTexts[column] ?? '', cell - 6), x, HEIGHT - 2 * MARGIN - index * LINE_HEIGHT - 10)
      })
    })
    const time = `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC · ${rows.length} ${rows.length === 1 ? 'row' : 'rows'}`
    const head = [line(title, MARGIN, HEIGHT - MARGIN - 10, 14), line(time, MARGIN, HEIGHT - MARGIN - 26)]
    return [...head, ...cells, line(`Page ${page + 1} of ${count}`, WIDTH - MARGIN - 60, MARGIN)].join('\n')
  })
  const font = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>'
  // Objects are numbered from 1: the catalogue, the list of pages, the font, and two for each page.
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${count} /Kids [${pages.map((_, page) => `${4 + 2 * page} 0 R`).join(' ')}] >>`,
    font,
    ...pages.flatMap((content, page) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${WIDTH} ${HEIGHT}] /Resources << /Font << /F 3 0 R >> >> /Contents ${5 + 2 * page} 0 R >>`,
      `<< /Length ${content.length} >>\nstream\n${content}\nendstream`
    ])
  ]
  let document = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const offset = document.length
    document += `${index + 1} 0 obj\n${object}\nendobj\n`
    return `${String(offset).padStart(10, '0')} 00000 n \n`
  })
  const size = objects.length + 1
  const references = `xref\n0 ${size}\n0000000000 65535 f \n${offsets.join('')}`
  const trailer = `trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${document.length}\n%%EOF\n`
  return Buffer.from(`${document}${references}${trailer}`, 'latin1')
}
