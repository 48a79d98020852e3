import { parseArgs } from 'node:util'
import { type Command, CommandError, onePositional } from '../command.js'

export const clientApiCommand: Command = {
  summary: 'generate typed calls for gatehouse-client from an OpenAPI description',
  usage: 'gatehouse client-api FILE [-o FILE]',
  run: async (args, _context) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { output: { type: 'string', short: 'o' } },
      allowPositionals: true
    })
    const file = onePositional(positionals, 'FILE')
    const [{ clientApi }, { SettingsError }, { writeFileSync }] = await Promise.all([
      import('../client-api.js'),
      import('../../shared/env.js'),
      import('node:fs')
    ])
    try {
      const text = clientApi(file)
      if (values.output === undefined) process.stdout.write(text)
      else writeFileSync(values.output, text)
      return 0
    } catch (error) {
      throw error instanceof SettingsError ? new CommandError(error.errors) : error
    }
  }
}
