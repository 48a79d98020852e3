import { parseArgs } from 'node:util'
import { type Command, UsageError } from '../command.js'

export const devCommand: Command = {
  summary: 'run the gateway, the relay, a backend command and a web development server on this machine, until Ctrl-C',
  usage: "gatehouse dev [--web 'COMMAND [ARGUMENT]...'] [-- COMMAND [ARGUMENT]...]",
  run: async (args, context) => {
    const end = args.indexOf('--')
    const own = end === -1 ? args : args.slice(0, end)
    const { values, positionals } = parseArgs({
      args: [...own],
      options: { web: { type: 'string', default: '' } },
      allowPositionals: true
    })
    if (positionals.length > 0) throw new UsageError(`unexpected argument: ${positionals[0]}`)
    const web = values.web.split(' ').filter((word) => word !== '')
    const { runDev } = await import('../dev/dev.js')
    await runDev({ backend: end === -1 ? [] : args.slice(end + 1), web }, context)
    return 0
  }
}
