import t from 'tap'
import { csv } from '../backend/export/csv.js'
import { type PdfTable, pdfTable } from '../backend/export/pdf.js'
import { form, PNG, startTestBackend } from './demo-backend.js'

t.test('CSV', async (t) => {
  const cases: readonly (readonly [unknown, string, string])[] = [
    ['plain', 'plain', 'plain text'],
    ['a,b', '"a,b"', 'a comma'],
    ['say "hi"', '"say ""hi"""', 'quotes'],
    ['two\nlines', '"two\nlines"', 'a line end'],
    ['=1+1', "'=1+1", 'a formula'],
    ['+49 30', "'+49 30", 'a plus sign'],
    ['-2', "'-2", 'a minus sign'],
    ['@SUM(A1)', "'@SUM(A1)", 'an at sign'],
    ['\t=1', `"'\t=1"`, 'a formula after a tab'],
    ["'=1+1", "''=1+1", 'an apostrophe before a formula'],
    ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`, 'a formula with quotes'],
    [null, '', 'nothing'],
    [true, 'true', 'a flag'],
    [new Date(0), '1970-01-01T00:00:00.000Z', 'a point in time']
  ]
  for (const [value, written, title] of cases) {
    t.test(`CSV export writes ${title}`, async (t) => {
      t.equal(csv(['field'], [{ field: value }]), `field\r\n${written}\r\n`)
    })
  }
})

/** The characters of WinAnsi that are used here and are not in Latin-1. */
const WIN_ANSI = new Map(Object.entries({ '\x85': '…', '\x8c': 'Œ', '\x92': '’', '\x96': '–' }))

const textIn = (hex: string): string =>
  Buffer.from(hex, 'hex')
    .toString('latin1')
    .replaceAll(/[\x80-\x9f]/g, (code) => WIN_ANSI.get(code) ?? '')

/** The texts of a document, one string per page. Checks that the table of references points to the objects. */
const pagesOf = (bytes: Buffer): readonly string[] => {
  const document = bytes.toString('latin1')
  const start = Number(/startxref\n(\d+)\n%%EOF\n$/.exec(document)?.[1])
  const offsets = [...document.slice(start).matchAll(/^(\d{10}) 00000 n $/gm)].map(([, offset]) => Number(offset))
  if (!document.slice(start).startsWith('xref\n') || offsets.length < 5) throw new Error('no references')
  for (const [index, offset] of offsets.entries())
    if (!document.slice(offset).startsWith(`${index + 1} 0 obj\n`)) throw new Error(`no object ${index + 1}`)
  return [...document.matchAll(/<< \/Length (\d+) >>\nstream\n([\s\S]*?)\nendstream/g)].map(
    ([, length, content = '']) => {
      if (content.length !== Number(length)) throw new Error('wrong length')
      return [...content.matchAll(/<([0-9a-f]*)> Tj/g)].map(([, hex = '']) => textIn(hex)).join('\n')
    }
  )
}

const table = (rows: PdfTable['rows']): PdfTable => ({
  title: 'Northgate Campus – Personnel',
  at: new Date('2026-03-29T12:34:00Z'),
  columns: [
    { field: 'name', title: 'Name', width: 0.3 },
    { field: 'email', title: 'E-mail', width: 0.7 }
  ],
  rows
})

t.test('a PDF export', async (t) => {
  t.test('a PDF export has names of western Europe as text, and question marks for other characters', async (t) => {
    const names = ['Åsa Müller-Çelik', 'Zoë O’Neill – Œuvré', '李小龙', 'A\u0000B (c) \\ end']
    const [page = ''] = pagesOf(pdfTable(table(names.map((name) => ({ name })))))
    for (const text of ['Åsa Müller-Çelik', 'Zoë O’Neill – Œuvré', '???', 'A?B (c) \\ end'])
      t.ok(page.includes(text), text)
  })

  t.test('every page has the title, the time, the columns and its number', async (t) => {
    const rows = Array.from({ length: 70 }, (_, index) => ({ name: `Person ${index}` }))
    const pages = pagesOf(pdfTable(table(rows)))
    t.equal(pages.length, 3)
    for (const [index, page] of pages.entries()) {
      t.match(page, 'Northgate Campus – Personnel')
      t.match(page, '2026-03-29 12:34 UTC · 70 rows')
      t.match(page, 'Name\nE-mail')
      t.match(page, `Page ${index + 1} of 3`)
    }
    for (let index = 0; index < 70; index += 1) t.match(pages.join(' '), new RegExp(`Person ${index}\\b`))
  })

  t.test('a PDF export without rows has one page, and a long text is cut', async (t) => {
    t.equal(pagesOf(pdfTable(table([]))).length, 1)
    t.match(pagesOf(pdfTable(table([{ name: 'x'.repeat(500), email: 'a@example.com' }])))[0], /xxx…\s+a@example\.com/)
  })
})

/** The beginning of a PNG file. */
const pngHeader = (width: number, height: number): Buffer => {
  const file = Buffer.from(PNG)
  file.writeUInt32BE(width, 16)
  file.writeUInt32BE(height, 20)
  return file
}

/** The beginning of a JPEG file of 8 × 8 pixels, with this number of segments of 64 KB before its size. */
const jpeg = (segments: number): Buffer => {
  const segment = Buffer.concat([Buffer.from('ffe2fffe', 'hex'), Buffer.alloc(0xfffc)])
  const size = Buffer.from('ffc0000b080008000801011100', 'hex')
  return Buffer.concat([Buffer.from('ffd8', 'hex'), ...Array.from({ length: segments }, () => segment), size])
}

/** A JPEG file with this number of empty segments before its size. */
const jpegOfSegments = (segments: number): Buffer =>
  Buffer.concat([Buffer.from('ffd8', 'hex'), Buffer.from('ffe20002'.repeat(segments), 'hex'), jpeg(0).subarray(2)])

t.test('the exports and uploads of the backend', async (t) => {
  const backend = await startTestBackend(t)
  const admin = await backend.signIn('admin')
  const get = (path: string) => backend.request('GET', path, admin)
  const upload = async (path: string, file: Buffer, name?: string) => {
    const { headers, body } = form(file, name)
    return backend.send(path, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${admin}` },
      ...(body !== undefined && { body })
    })
  }

  t.test('the CSV export contains all personnel and has a file name', async (t) => {
    await backend.request('POST', '/api/personnel', admin, { name: '=cmd', firstName: '=cmd', lastName: 'Zz' })
    const { headers, body } = await get('/api/personnel/export/csv')
    const lines = body.trimEnd().split('\r\n')
    t.equal(lines.length, 1 + 161)
    t.match(lines[0], '\uFEFFid,employeeId,name,firstName')
    t.match(body, ",'=cmd,Zz")
    t.match(headers, { 'content-type': /^text\/csv/, 'content-disposition': 'attachment; filename="personnel.csv"' })
  })

  t.test('the PDF export contains the personnel', async (t) => {
    const path = '/api/personnel/export/pdf?departmentId=2&isActive=true'
    const { headers } = await get(path)
    t.equal(headers['content-type'], 'application/pdf')
    const response = await fetch(`${backend.url}${path}`, { headers: { authorization: `Bearer ${admin}` } })
    const pages = pagesOf(Buffer.from(await response.arrayBuffer()))
    t.match(pages[0], /Northgate Campus – Personnel/)
    const { meta } = (await get('/api/personnel?departmentId=2&isActive=true')).json()
    t.match(pages[0], ` · ${meta.total} rows`)
  })

  t.test('a floor has no plan until one is uploaded', async (t) => {
    t.equal((await get('/api/floors/f-1/plan')).status, 404)
    t.equal((await upload('/api/floors/f-1/upload', PNG)).status, 201)
    t.equal((await get('/api/floors/f-1/plan')).headers['content-type'], 'image/png')

    await backend.request('DELETE', '/api/buildings/1', admin)
    t.equal((await get('/api/floors/f-1/plan')).status, 404, 'the image is deleted with the building of the floor')
  })

  t.test('a photo is returned unchanged and deleted with the person', async (t) => {
    t.equal((await upload('/api/personnel/7/photo', PNG)).json().data.photoUrl, '/api/personnel/7/photo')
    t.equal((await get('/api/personnel/7')).json().data.photoUrl, '/api/personnel/7/photo')
    t.equal((await get('/api/personnel/7/photo')).headers['content-length'], String(PNG.length))

    await backend.request('DELETE', '/api/personnel/7', admin)
    t.equal((await get('/api/personnel/7/photo')).status, 404)
  })

  const BAD: readonly (readonly [string, Buffer, number, string])[] = [
    [
      'an SVG, which may contain scripts',
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
      415,
      'UNSUPPORTED_MEDIA_TYPE'
    ],
    ['a small file with a huge image', pngHeader(60_000, 60_000), 413, 'IMAGE_TOO_LARGE'],
    ['an image without a size', PNG.subarray(0, 12), 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['a JPEG image with its size behind hundreds of segments', jpegOfSegments(300), 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['text declared as an image', Buffer.from('hello'), 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['a file larger than two megabytes', Buffer.concat([PNG, Buffer.alloc(2 * 1024 * 1024)]), 413, 'BODY_TOO_LARGE']
  ]
  for (const [title, file, status, code] of BAD) {
    t.test(`a photo upload rejects ${title}`, async (t) => {
      const response = await upload('/api/personnel/8/photo', file)
      t.same([response.status, response.json().error.code], [status, code])
    })
  }

  t.test('a form without a file or with a truncated one is rejected', async (t) => {
    const headers = { authorization: `Bearer ${admin}`, 'content-type': 'multipart/form-data; boundary=edge' }
    for (const body of ['', '--edge--\r\n', '--edge\r\nContent-Disposition: form-data; filename="a"\r\n\r\nhalf']) {
      const response = await backend.send('/api/personnel/8/photo', { method: 'POST', headers, body })
      t.equal(response.json().error.code, 'NO_FILE')
    }
  })
})
