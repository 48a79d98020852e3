import t from 'tap'
import { soak } from './soak.js'
import { violationText } from './verifier.js'

// `npm run soak` is the long form: two minutes, more clients, a new sequence of faults each time.
const OPTIONS = { seed: 1, seconds: 8, faults: 6, clients: 40 }

t.test('three nodes on Redis and two workers deliver everything through random faults', async (t) => {
  const { violations, deliveries, faults } = await soak(OPTIONS, {
    t,
    folder: t.testdir(),
    print: (line) => t.comment(line)
  })

  t.same(violations.map(violationText), [])
  t.ok(faults >= OPTIONS.faults, `${faults} faults`)
  t.ok(deliveries > 0, `${deliveries} deliveries checked`)
})
