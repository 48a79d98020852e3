import { fullFormats } from 'ajv-formats/dist/formats.js'
import fc from 'fast-check'
import t from 'tap'
import { URL_FORMAT } from '../../src/openapi/url-format.js'
import { linearRegExpOfJavaScript } from '../../src/shared/linear-regexp.js'
import { checkProperty } from '../helper/property.js'

const url = linearRegExpOfJavaScript(URL_FORMAT)
const ofAjv = fullFormats.url as RegExp

const BYTES = Array.from({ length: 260 }, (_, byte) => byte)

t.test('the format url accepts the same IPv4 addresses as Ajv', async (t) => {
  const hosts = BYTES.flatMap((byte) => [
    ...[`${byte}.0.0.1`, `8.${byte}.0.1`, `8.8.0.${byte}`, `8.8.${byte}.1`],
    ...[`169.${byte}.1.1`, `172.${byte}.1.1`, `192.${byte}.1.1`, `172.0${byte}.1.1`, `0${byte}.1.1.1`]
  ])
  const accepted = hosts.filter((host) => ofAjv.test(`http://${host}/`))
  t.ok(accepted.length > 1000)
  t.same(
    hosts.filter((host) => url.test(`http://${host}/`)),
    accepted
  )
})

t.test('the format url accepts the same texts as Ajv', async (t) => {
  const part = fc.constantFrom(
    ...['http://', 'HTTPS://', 'ftp://', '://', 'a', 'example', '.com', '.', '-', '@', ':', ':80', ':8', '/', '?', '#'],
    ...['10.0.0.1', '8.8.8.8', '127.0.0.1', 'ä', '日本', '.jp', '%20', ' ', '_', '\u00a0', '😀', '0']
  )
  await checkProperty(
    t,
    fc.property(fc.constantFrom('', 'http://', 'https://a:b@'), fc.array(part, { maxLength: 6 }), (start, parts) => {
      const text = start + parts.join('')
      return url.test(text) === ofAjv.test(text)
    }),
    { numRuns: 3000 }
  )
})
