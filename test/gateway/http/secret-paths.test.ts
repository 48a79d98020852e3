import t from 'tap'
import { SecretPaths } from '../../../src/gateway/http/secret-paths.js'

const SECRET_TEMPLATES = [
  '/api/phone-beacon/{token}',
  '/api/users/{id}/reset/{token}',
  '/api/invitations/{token}/accept',
  '/api/{tenant}/shares/{token}',
  '/api/caf%C3%A9/{token}'
]
const TEMPLATES = [
  ...SECRET_TEMPLATES,
  '/api/phone-beacon/onboarding-token',
  '/api/phone-beacon-models/{id}',
  '/api/users/{id}'
]
const paths = new SecretPaths(SECRET_TEMPLATES, TEMPLATES)

const MASKED: readonly (readonly [path: string, masked: string])[] = [
  ['/api/phone-beacon/s3cr3t', '/api/phone-beacon/…'],
  ['/api/phone-beacon/s3cr3t/', '/api/phone-beacon/…'],
  ['/api/phone-beacon/%E2%80%A6', '/api/phone-beacon/…'],
  ['/api/users/7/reset/s3cr3t', '/api/users/…'],
  ['/api/invitations/s3cr3t/accept', '/api/invitations/…'],
  ['/api/invitations/s3cr3t', '/api/invitations/…'],
  ['/api/acme/shares/s3cr3t', '/api/…'],
  ['/api/caf%c3%a9/s3cr3t', '/api/caf%c3%a9/…'],
  // Other prefixes.
  ['/phone-beacon/s3cr3t', '/phone-beacon/…'],
  ['phone-beacon/s3cr3t', 'phone-beacon/…'],
  ['http://host/api/phone-beacon/s3cr3t', 'http://host/api/phone-beacon/…'],
  ['/api/v1/phone-beacon/s3cr3t', '/api/v1/phone-beacon/…'],
  // Letter case and encodings.
  ['/API/Phone-BEACON/s3cr3t', '/API/Phone-BEACON/…'],
  ['/api/%70hone-beacon/s3cr3t', '/api/%70hone-beacon/…'],
  ['/api/%2570hone-beacon/s3cr3t', '/api/%2570hone-beacon/…'],
  ['/api/%25%37%30hone-beacon/s3cr3t', '/api/%25%37%30hone-beacon/…'],
  ['/api/phone%2Dbeacon/s3cr3t', '/api/phone%2Dbeacon/…'],
  ['/api/%EF%BD%90hone-beacon/s3cr3t', '/api/%EF%BD%90hone-beacon/…'],
  ['/api/\xef\xbd\x90hone-beacon/s3cr3t', '/api/\xef\xbd\x90hone-beacon/…'],
  ['/api/\xefphone-beacon\xff/s3cr3t', '/api/\xefphone-beacon\xff/…'],
  ['/api/phone-beacon%FF/s3cr3t', '/api/phone-beacon%FF/…'],
  // Separators.
  ['//api//phone-beacon//s3cr3t', '//api//phone-beacon/…'],
  ['/api/phone-beacon%2Fs3cr3t', '/api/phone-beacon/…'],
  ['/api/phone-beacon%252fs3cr3t', '/api/phone-beacon/…'],
  ['/api/phone-beacon%25%32%66s3cr3t', '/api/…'],
  ['/api/phone-beacon%EF%BC%8Fs3cr3t', '/api/…'],
  ['/api%2fphone-beacon%EF%BC%8Fs3cr3t', '/api%2f…'],
  ['/api\\phone-beacon\\s3cr3t', '/api\\phone-beacon/…'],
  ['/api/phone-beacon;s3cr3t', '/api/phone-beacon/…'],
  ['/api/phone-beacon.s3cr3t', '/api/phone-beacon/…'],
  ['/api/phone-beacon:s3cr3t', '/api/phone-beacon/…'],
  ['/api/phone-beacon%3Fs3cr3t', '/api/phone-beacon/…'],
  ['/api/phone-beacon%zzs3cr3t', '/api/phone-beacon/…'],
  // Further segments.
  ['/api/zones/../phone-beacon/s3cr3t', '/api/zones/../phone-beacon/…'],
  ['/api/phone-beacon/s3cr3t/../..', '/api/phone-beacon/…'],
  ['/api/users/1/../7/./reset/s3cr3t', '/api/users/…'],
  ['/api/phone-beacon/onboarding-token/s3cr3t', '/api/phone-beacon/…'],
  ['/api/users/7/reset/phone-beacon/s3cr3t', '/api/users/…']
]

for (const [path, masked] of MASKED) {
  t.test(`${path} is shown as ${masked}`, async (t) => {
    t.equal(paths.masked(path), masked)
  })
}

const SHOWN = [
  '/',
  '*',
  '/api/zones/7',
  '/api/zones/a%20b',
  '/api/%zz',
  '/api/phone-beacon',
  '/api/phone-beacon/',
  '/api/phone-beacon/onboarding-token',
  '/api/phone-beacon-models/7',
  '/api/users/7',
  '/api/users/7/reset',
  '/api/zones/phone-beacon',
  '/assets/index-DiwrgTda.js'
]

for (const path of SHOWN) {
  t.test(`${path} contains no secret and is shown`, async (t) => {
    t.equal(paths.masked(path), path)
  })
}

t.test('without secret templates every path is shown', async (t) => {
  const none = new SecretPaths([], TEMPLATES)
  for (const [path] of MASKED) t.equal(none.masked(path), path)
})
