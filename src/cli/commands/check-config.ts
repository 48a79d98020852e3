import { parseArgs } from 'node:util'
import { type Command, onePositional, UsageError } from '../command.js'
import { withEnvFileLines } from '../env-file.js'

const SET_PRODUCTION = 'these rules apply only where the programs run with NODE_ENV=production in their environment'

export const checkConfigCommand: Command = {
  summary: 'check the settings and files of the gateway and the relay, and print every error',
  usage: 'gatehouse check-config [--gateway | --relay | FILE] [--production]',
  run: async (args, { env, envFiles, print, printErrors }) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: {
        gateway: { type: 'boolean', default: false },
        relay: { type: 'boolean', default: false },
        production: { type: 'boolean', default: false }
      },
      allowPositionals: true
    })
    const { gateway, relay, production } = values
    const file = positionals.length === 0 ? null : onePositional(positionals, 'FILE')
    if (file !== null && (gateway || relay)) throw new UsageError(`unexpected argument: ${file}`)
    const environment = production ? { ...env, NODE_ENV: 'production' } : env
    const { checkBoth, checkConfigFile, checkGateway, checkRelay } = await import('../check-config.js')
    const [subject, { errors, warnings }] =
      file !== null
        ? [`${file} is`, checkConfigFile(file, environment)]
        : gateway === relay
          ? ['the settings of the gateway and the relay are', await checkBoth(environment)]
          : gateway
            ? ['the settings of the gateway are', await checkGateway(environment)]
            : ['the settings of the relay are', checkRelay(environment)]
    const isSet = file !== null || !production || env.NODE_ENV === 'production'
    const located = (lines: readonly string[]): string[] => withEnvFileLines(lines, envFiles, env)
    const unset = isSet ? [] : [`NODE_ENV is ${env.NODE_ENV || 'not set'}: ${SET_PRODUCTION}`]
    printErrors([...located(errors), ...located([...unset, ...warnings]).map((line) => `warning: ${line}`)])
    if (errors.length > 0) return 1
    print(`${subject} valid`)
    return 0
  }
}
