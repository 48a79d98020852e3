import t from 'tap'
import { Sealer } from '../../../src/gateway/oidc/sealer.js'

const sealer = new Sealer({ secrets: ['a-secret-for-tests'], purpose: 'test', now: () => Date.now() })

t.test('sealed content that is longer than a cookie can be is not decrypted', async (t) => {
  t.match(await sealer.open(await sealer.seal({ name: 'x'.repeat(2000) }, 60)), { name: /^x+$/ })
  t.equal(await sealer.open(await sealer.seal({ name: 'x'.repeat(4000) }, 60)), null)
})
