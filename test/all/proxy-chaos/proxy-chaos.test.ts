import t from 'tap'
import { proxyChaos } from './chaos.js'

// `npm run test:proxy-chaos` is the long form: five minutes, 500 clients, a new sequence of failures each time.
const OPTIONS = { seconds: 20, clients: 60, seed: 1 }

t.test('clients have the state that the backend allows after its failures', async (t) => {
  const violations = await proxyChaos(OPTIONS, { t, folder: t.testdir(), print: (line) => t.comment(line) })
  t.same(violations, [])
})
