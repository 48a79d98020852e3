import { parseArgs } from 'node:util'
import { type ProgramName, V8_FLAGS } from '../../shared/v8-flags.js'
import type { Command } from '../command.js'
import { canRestart, missingFlags, runWithFlags, stopWithParent } from '../run-with-flags.js'

/** Runs one of the two programs with its V8 flags. */
const program = (name: ProgramName, load: () => Promise<unknown>): Command => ({
  summary: `run the ${name}, configured by the environment`,
  usage: `gatehouse ${name}`,
  run: async (args, { env }) => {
    parseArgs({ args: [...args], options: {}, strict: true })
    const node = { execArgv: process.execArgv, nodeOptions: env.NODE_OPTIONS ?? '' }
    const flags = missingFlags(V8_FLAGS[name], node)
    stopWithParent(env)
    if (flags.length > 0 && canRestart(node)) return await runWithFlags(flags, env)
    await load()
    return null
  }
})

export const gatewayCommand = program('gateway', () => import('../../gateway/main.js'))
export const relayCommand = program('relay', () => import('../../relay/main.js'))
