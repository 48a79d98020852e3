import { type Command, UsageError } from '../command.js'

export const devCommand: Command = {
  summary: 'run the gateway, the relay and a backend command on this machine, until Ctrl-C',
  usage: 'gatehouse dev [-- COMMAND [ARGUMENT]...]',
  run: async (args, context) => {
    const [first, ...backend] = args
    // Not `parseArgs`: the arguments after `--` belong to the command.
    if (first !== undefined && first !== '--') throw new UsageError(`unexpected argument: ${first}`)
    const { runDev } = await import('../dev/dev.js')
    await runDev(backend, context)
    return 0
  }
}
