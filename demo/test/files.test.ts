import { execFileSync } from 'node:child_process'
import { imageSize } from 'image-size'
import t from 'tap'
import { thisMachine } from '../../scripts/lib/services.js'
import { environment } from '../../test/helper/environment.js'
import { required } from '../../test/helper/required.js'
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

// Poppler is a PDF reader of its own, so that its text shows what people see and search.
const pdftotext = required(thisMachine({ PATH: environment.path }).find('pdftotext'))

/** The text of a document, one string per page. */
const pagesOf = (bytes: Buffer): readonly string[] => {
  const text = execFileSync(pdftotext, ['-layout', '-', '-'], { input: bytes, encoding: 'utf8' })
  return text.split('\f').slice(0, -1)
}

const NAMES = [
  ...['Åsa Müller-Çelik', 'Łukasz Dvořák', 'Nguyễn Thị Hồng', 'Ελένη Παπαδοπούλου', 'Юлия Щербакова'],
  ...['עדה לוי', 'فاطمة الزهراء', '李小龙', '田中さくら', '김민준', 'สมชาย ใจดี', 'आरव', 'Արամ Խաչատրյան', 'ნინო']
]

const table = (rows: readonly Readonly<Record<string, unknown>>[], more: Partial<PdfTable> = {}): PdfTable => ({
  site: 'Northgate Campus',
  title: 'Personnel',
  filter: '',
  at: new Date('2026-03-29T12:34:00Z'),
  timeZone: 'Europe/Berlin',
  columns: [
    { field: 'name', title: 'Name', width: 0.3 },
    { field: 'email', title: 'E-mail', width: 0.7 }
  ],
  rows,
  ...more
})

t.test('a PDF export', async (t) => {
  t.test('a PDF export contains names of all scripts as text', async (t) => {
    const [page = ''] = pagesOf(await pdfTable(table(NAMES.map((name) => ({ name })))))
    const text = page.normalize('NFKC')
    for (const name of NAMES) t.ok(text.includes(name.normalize('NFKC')), name)
  })

  t.test('a PDF export contains only the glyphs that it uses', async (t) => {
    const one = await pdfTable(table([{ name: '李小龙' }]))
    t.ok(one.length < 60_000, `${one.length} bytes`)
  })

  t.test('every page has the site, the title, the time, the filter and its number', async (t) => {
    const rows = Array.from({ length: 100 }, (_, index) => ({ name: `Person (${index}) \\ end` }))
    const pages = pagesOf(await pdfTable(table(rows, { filter: 'department Research' })))
    t.equal(pages.length, 5)
    for (const [index, page] of pages.entries()) {
      t.match(page, /Northgate Campus – Personnel/)
      t.match(page, '29 March 2026 at 14:34 CEST · Filter: department Research · 100 rows')
      t.match(page, /Name +E-mail/)
      t.match(page, `Page ${index + 1} of 5`)
    }
    t.match(pages[0], 'Person (0) \\ end')
    t.match(pages[4], 'Person (99) \\ end')
  })

  t.test('long names wrap and are complete', async (t) => {
    const name = Array.from({ length: 30 }, (_, index) => `Part${index}`).join(' ')
    const email = `${'x'.repeat(200)}@example.com`
    const [page = ''] = pagesOf(await pdfTable(table([{ name, email }])))
    for (let index = 0; index < 30; index += 1) t.match(page, new RegExp(`Part${index}\\b`))
    t.match(page.replace(/Part\d+|\s/g, ''), email)
  })

  t.test('a PDF export without rows has one page', async (t) => {
    const pages = pagesOf(await pdfTable(table([], { site: '', timeZone: 'No/Where' })))
    t.equal(pages.length, 1)
    t.match(pages[0], '29 March 2026 at 12:34 UTC · Filter: none · 0 rows')
  })

  t.test('control characters and unknown characters do not prevent an export', async (t) => {
    const name = 'A\u0000B\u202eC\u2066\ud800\u{10ffff}\u{1f600} end'
    const [page] = pagesOf(await pdfTable(table([{ name }])))
    t.match(page, 'end')
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
    const path = '/api/personnel/export/pdf?departmentId=2&isActive=true&search=a'
    const { headers } = await get(path)
    t.equal(headers['content-type'], 'application/pdf')
    const response = await fetch(`${backend.url}${path}`, { headers: { authorization: `Bearer ${admin}` } })
    const pages = pagesOf(Buffer.from(await response.arrayBuffer()))
    t.match(pages[0], /Northgate Campus – Personnel/)
    const { data } = (await get('/api/mgmt/departments')).json()
    const { name } = data.find(({ id }: { id: string }) => id === '2')
    t.match(pages[0], `Filter: department ${name}, active “true”, search “a”`)
  })

  t.test('the PDF export has the name of the organisation', async (t) => {
    await backend.request('PATCH', '/api/mgmt/settings/general', admin, { organizationName: 'Käthe-Kollwitz-Klinik' })
    const response = await fetch(`${backend.url}/api/personnel/export/pdf`, {
      headers: { authorization: `Bearer ${admin}` }
    })
    t.match(pagesOf(Buffer.from(await response.arrayBuffer()))[0], 'Käthe-Kollwitz-Klinik – Personnel')
  })

  t.test('a floor has no plan until one is uploaded', async (t) => {
    t.equal((await get('/api/floors/f-1/plan')).status, 404)
    t.equal((await upload('/api/floors/f-1/upload', PNG)).status, 201)
    t.equal((await get('/api/floors/f-1/plan')).headers['content-type'], 'image/png')

    await backend.request('DELETE', '/api/buildings/1', admin)
    t.equal((await get('/api/floors/f-1/plan')).status, 404, 'the image is deleted with the building of the floor')
  })

  t.test('a new demo has small photos of most people', async (t) => {
    const { data } = (await get('/api/personnel?limit=20')).json()
    const addresses = data.flatMap(({ photoUrl }: { photoUrl: string | null }) => photoUrl ?? [])
    t.ok(addresses.length > 10 && addresses.length < 20, `${addresses.length} of 20`)
    const photos: Buffer[] = []
    for (const address of addresses) {
      const response = await fetch(`${backend.url}${address}`, { headers: { authorization: `Bearer ${admin}` } })
      photos.push(Buffer.from(await response.arrayBuffer()))
    }
    for (const photo of photos) t.match(imageSize(photo), { type: 'png', width: 88, height: 88 })
    const size = photos.reduce((sum, photo) => sum + photo.length, 0)
    t.ok(size < 50_000, `${size} bytes for a page of the list`)
  })

  t.test('a photo is returned unchanged and deleted with the person', async (t) => {
    t.equal((await upload('/api/personnel/7/photo', PNG)).json().data.photoUrl, '/api/personnel/7/photo')
    t.equal((await get('/api/personnel/7')).json().data.photoUrl, '/api/personnel/7/photo')
    t.equal((await get('/api/personnel/7/photo')).headers['content-length'], String(PNG.length))

    await backend.request('DELETE', '/api/personnel/7', admin)
    t.equal((await get('/api/personnel/7/photo')).status, 404)
  })

  t.test('a JPEG photo may have its size behind other data', async (t) => {
    t.equal((await upload('/api/personnel/8/photo', jpeg(2))).status, 201)
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
    ['a JPEG image with its size behind a megabyte', jpeg(16), 415, 'UNSUPPORTED_MEDIA_TYPE'],
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
