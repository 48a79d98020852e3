import { inflateSync } from 'node:zlib'
import PDFDocument from 'pdfkit'
import t from 'tap'
import { firstPage } from '../backend/plans/pdf.js'
import { svgPlan } from '../backend/plans/svg.js'
import { form, startTestBackend } from './demo-backend.js'

const NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'
const svg = (inside: string, attributes = 'viewBox="0 0 600 250"'): Buffer =>
  Buffer.from(`<svg ${NAMESPACE} ${attributes}>${inside}</svg>`)

/** A PDF document with one page. */
const pdf = async (options: PDFKit.PDFDocumentOptions = {}, draw = (_: PDFKit.PDFDocument): unknown => null) => {
  const document = new PDFDocument({ size: [600, 250], ...options })
  const parts: Buffer[] = []
  document.on('data', (part: Buffer) => parts.push(part))
  const ended = new Promise((resolve) => document.on('end', resolve))
  draw(document)
  document.end()
  await ended
  return Buffer.concat(parts)
}

const backend = await startTestBackend(t)
const admin = await backend.signIn('admin')
const upload = async (floorId: string, file: Buffer) => {
  const { headers, body = '' } = form(file, 'plan')
  const message = { method: 'POST', headers: { ...headers, authorization: `Bearer ${admin}` }, body }
  return (await backend.send(`/api/floors/${floorId}/upload`, message)).json()
}
const shown = (floorId: string) => backend.request('GET', `/api/floors/${floorId}/plan`, admin)

t.test('an SVG drawing', async (t) => {
  t.test('an SVG drawing is stored with a size in pixels, and shown as an image only', async (t) => {
    const { data } = await upload('f-2', svg('<g id="a"><path d="M0 0h9"/></g><use href="#a"/><text>A &amp; B</text>'))
    t.match(data, { imageWidth: 3000, imageHeight: 1250, pixelsPerMetre: 50 })
    const { headers, body } = await shown('f-2')
    t.equal(headers['content-type'], 'image/svg+xml')
    t.match(headers['content-disposition'], /^attachment/)
    t.match(headers['content-security-policy'], /^default-src 'none'.*sandbox$/)
    t.match(body, /^<svg xmlns="[^"]+" width="3000" height="1250" viewBox="0 0 600 250"><g id="a">/)
  })

  t.test('the document type that editors write is accepted, and left out', async (t) => {
    const types = [
      '<!DOCTYPE svg>',
      '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">',
      "<!DOCTYPE svg SYSTEM 'svg11.dtd' >"
    ]
    for (const type of types) {
      const { bytes } = svgPlan(Buffer.from(`<?xml version="1.0"?>\n<!-- an editor -->\n${type}\n${svg('<g/>')}`))
      t.match(bytes.toString(), /^<svg [^!]*$/, type)
    }
  })

  t.test('lengths with units give the size and the visible part', async (t) => {
    const { bytes, ...size } = svgPlan(svg('', 'width="2in" height="96"'))
    t.same(size, { width: 3000, height: 1500 })
    t.match(bytes.toString(), 'viewBox="0 0 192 96"')
  })

  const nested = Array.from({ length: 20 }, (_, n) => `<g id="a${n + 1}">${`<use href="#a${n}"/>`.repeat(3)}</g>`)
  const unsafe: readonly (readonly [string, Buffer, RegExp])[] = [
    ['a script', svg('<script>1</script>'), /<script>, which is not allowed/],
    ['a script with a prefix', svg('<x:SCRIPT xmlns:x="http://www.w3.org/1999/xhtml"/>'), /not allowed/],
    ['a foreign object', svg('<foreignObject/>'), /not allowed/],
    ['an animation', svg('<set attributeName="href" to="x"/>'), /not allowed/],
    ['an event attribute', svg('<g OnClick="x()"/>'), /event attribute OnClick/],
    ['an external image', svg('<image href="https://example.com/x.png"/>'), /refers to other files/],
    ['a script address', svg('<a xlink:href="java&#10;script:x()"/>'), /refers to other files/],
    ['an embedded document', svg('<image href="data:image/svg+xml;base64,AAAA"/>'), /refers to other files/],
    ['an external paint', svg('<g fill="url(https://example.com)"/>'), /refers to other files/],
    ['an escaped paint', svg('<g fill="u\\72l(https://example.com)"/>'), /escapes in styles/],
    ['an import of styles', svg('<style><![CDATA[@import "x";]]></style>'), /styles that load files/],
    ['a document type with entities', Buffer.from(`<!DOCTYPE svg [<!ENTITY a "b">]>${svg('')}`), /DOCTYPE.*plain SVG/],
    ['two document types', Buffer.from(`<!DOCTYPE svg><!DOCTYPE svg>${svg('')}`), /DOCTYPE/],
    ['a document type inside', svg('<!DOCTYPE svg>'), /DOCTYPE/],
    ['an entity', svg('<text>&a;</text>'), /entity/],
    ['a style sheet', Buffer.from(`<?xml-stylesheet href="x"?><svg ${NAMESPACE}/>`), /processing instruction/],
    ['repetitions of repetitions', svg(`<g id="a0"/>${nested.join('')}`), /too many elements/],
    ['a repetition of itself', svg('<g id="a"><use href="#a"/></g>'), /too many elements/],
    ['deep nesting', svg(`${'<g>'.repeat(500)}${'</g>'.repeat(500)}`), /too many elements/],
    ['tags that are not closed', svg('<g>'), /not well-formed/],
    ['two drawings', Buffer.concat([svg(''), svg('')]), /not well-formed/],
    ['bytes that are not UTF-8', Buffer.concat([svg(''), Buffer.from([0x3c, 0xff])]), /UTF-8/],
    ['another document', Buffer.from('<html></html>'), /not an SVG drawing/],
    ['no size', svg('', ''), /neither a size nor a viewBox/]
  ]
  for (const [name, file, reason] of unsafe) {
    t.test(`an SVG drawing with ${name} is rejected`, async (t) => {
      t.throws(() => svgPlan(file), { name: 'SvgError', message: reason })
    })
  }

  t.test('a rejected SVG drawing is reported with the reason and changes nothing', async (t) => {
    const { error } = await upload('f-3', svg('<g onload="x()"/>'))
    t.match(error, { code: 'UNSAFE_SVG', message: /event attribute onload/ })
    t.equal((await shown('f-3')).status, 404)
  })
})

t.test('a PDF document', async (t) => {
  t.test(
    'the first page of a PDF document becomes an image with its colours, and a protected one is rejected',
    async (t) => {
      const file = await pdf({}, (document) => document.rect(0, 0, 600, 250).fill('#ff8800').addPage())
      const [{ data }, { error }] = await Promise.all([
        upload('f-4', file),
        upload('f-5', await pdf({ userPassword: 'secret' }))
      ])
      t.match(data, { imageWidth: 3000, imageHeight: 1250 })
      t.match(error, { code: 'UNREADABLE_PDF', message: /protected with a password/ })
      t.equal((await shown('f-5')).status, 404)
      t.equal((await shown('f-4')).headers['content-type'], 'image/png')
      const stored = await fetch(new URL('/api/floors/f-4/plan', backend.url), {
        headers: { authorization: `Bearer ${admin}` }
      })
      const image = Buffer.from(await stored.arrayBuffer())
      const begin = image.indexOf('IDAT') + 4
      const rows = inflateSync(image.subarray(begin, begin + image.readUInt32BE(begin - 8)))
      t.same([...rows.subarray(1, 4)], [0xff, 0x88, 0x00])
    }
  )

  t.test('a page that takes too long is rejected', async (t) => {
    const drawn = firstPage(await pdf(), 1)
    await t.rejects(drawn, { code: 'UNREADABLE_PDF', message: /too complex/ })
  })

  t.test('a page that needs too much memory is rejected within the limit', async (t) => {
    // A form that contains itself twice.
    const loop = `<< /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /F 4 0 R >> >> /Length 11 >>\nstream\n/F Do /F Do\nendstream`
    const objects = [
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << /F 4 0 R >> >> >>',
      loop
    ]
    const body = objects.map((object, index) => `${index + 1} 0 obj\n${object}\nendobj\n`).join('')
    const before = process.memoryUsage.rss()
    let most = 0
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss() - before)
    }, 10)
    const drawn = firstPage(Buffer.from(`%PDF-1.7\n${body}trailer << /Root 1 0 R >>\n`), 60_000)
    await t.rejects(drawn, { code: 'UNREADABLE_PDF', message: /too complex/ })
    clearInterval(timer)
    t.ok(most < 1e9, `${Math.round(most / 1e6)} MB`)
  })
})
