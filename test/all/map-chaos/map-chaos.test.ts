import t from 'tap'
import { mapChaos } from './chaos.js'

// `npm run test:map-chaos` is the long form: two minutes on each Redis, more clients, a new sequence of failures each time.
const OPTIONS = { seconds: 15, clients: 10, seed: 1 }

for (const isDurable of [true, false]) {
  t.test(
    `clients have the maps of a Redis that ${isDurable ? 'keeps' : 'loses'} writes after its failures`,
    async (t) => {
      t.same(await mapChaos(t, OPTIONS, isDurable, (line) => t.comment(line)), [])
    }
  )
}
