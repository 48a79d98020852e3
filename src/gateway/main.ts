import { acceptHangups } from '../shared/hangup.js'

acceptHangups()
const { start } = await import('./start.js')
await start(process.env)
