import { NegotiateRequestSchema } from '../../../../schemas/realtime.js'
import { defineRoutes, get, post, withOptionalBody } from './declare.js'

export const realtime = defineRoutes({
  domain: 'realtime',
  about: 'Connecting to the relay',
  rows: [
    get('/api/negotiate', 'Get the address of the relay and a token for it'),
    withOptionalBody(post('/api/negotiate', 'Get the address of the relay and a token for it', NegotiateRequestSchema))
  ]
})
