import { officialClient, TRANSPORTS } from '../helper/relay.js'
import { officialClientContract } from './official-client-contract.js'

officialClientContract({
  name: 'the official client',
  transports: TRANSPORTS,
  create: officialClient,
  encode: (value) => value,
  decode: (data) => data
})
