import { acceptHangups } from '../shared/hangup.js'
import { keepCompiledCode } from './keep-compiled-code.js'

acceptHangups()
// Loading the rest already makes V8 collect, and with its first collection it decides when to give memory back.
keepCompiledCode()
const { start } = await import('./start.js')
await start(process.env)
