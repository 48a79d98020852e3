import t from 'tap'
import { csv } from '../../demo/backend/export/csv.js'
import { pdfTable } from '../../demo/backend/export/pdf.js'
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
    ['\t=1', "'\t=1", 'a formula after a tab'],
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

/** Parses a file as PDF readers do: from the end, by its cross-reference offsets. */
const readPdf = (bytes: Buffer) => {
  const text = bytes.toString('latin1')
  const start = Number(/startxref\n(\d+)\n%%EOF\n$/.exec(text)?.[1])
  const entries = [...text.slice(start).matchAll(/^(\d{10}) 00000 n $/gm)].map(([, offset]) => Number(offset))
  const objects = entries.map((offset, index) => {
    const head = `${index + 1} 0 obj\n`
    return text.startsWith(head, offset) ? text.slice(offset + head.length, text.indexOf('\nendobj', offset)) : null
  })
  return { isXref: text.startsWith('xref\n', start), objects }
}

t.test('a PDF export is a valid document with escaped text', async (t) => {
  const columns = [{ field: 'name', title: 'Name', width: 40 }]
  const rows = Array.from({ length: 100 }, (_, index) => ({ name: `Person (${index}) \\ Müller 漢` }))
  const { isXref, objects } = readPdf(pdfTable('People', columns, rows))

  t.ok(isXref, 'the end names where the table of objects is')
  t.notOk(objects.includes(null), 'the table names where each object is')
  t.match(objects[0], '/Type /Catalog')
  t.match(objects[1], /\/Count 4 /, 'a hundred rows are four pages')
  for (const object of objects) {
    const [, length, content] = /<< \/Length (\d+) >>\nstream\n([\s\S]*)\nendstream/.exec(object ?? '') ?? []
    if (content !== undefined) t.equal(content.length, Number(length), 'a stream is as long as it says')
  }
  t.match(
    objects[4],
    'Person \\(0\\) \\\\ M\xfcller ?',
    'brackets are escaped, and characters that the font lacks are replaced'
  )
  t.match(readPdf(pdfTable('Nobody', columns, [])).objects[1], /\/Count 1 /, 'an empty table has one page')
})

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
    t.match(lines[0], 'id,employeeId,firstName')
    t.match(body, ",'=cmd,Zz")
    t.match(headers, { 'content-type': /^text\/csv/, 'content-disposition': 'attachment; filename="personnel.csv"' })
  })

  t.test('the PDF export contains the personnel', async (t) => {
    const { headers, body } = await get('/api/personnel/export/pdf')
    t.equal(headers['content-type'], 'application/pdf')
    t.match(body, /^%PDF-1\.4\n/)
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
