import { acceptHangups } from '../shared/hangup.js'
import { keepYoungObjectsYoung } from './young-objects.js'

acceptHangups()
keepYoungObjectsYoung()
const { start } = await import('./start.js')
await start(process.env)
