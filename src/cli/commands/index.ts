import type { Command } from '../command.js'
import { checkConfigCommand } from './check-config.js'
import { clientApiCommand } from './client-api.js'
import { devCommand } from './dev.js'
import { initCommand } from './init.js'
import { gatewayCommand, relayCommand } from './program.js'
import { tokenCommand } from './token.js'
import { verifyTokenCommand } from './verify-token.js'

/** Every command, in the order of the help. */
export const commands: Readonly<Record<string, Command>> = {
  init: initCommand,
  dev: devCommand,
  gateway: gatewayCommand,
  relay: relayCommand,
  'check-config': checkConfigCommand,
  token: tokenCommand,
  'verify-token': verifyTokenCommand,
  'client-api': clientApiCommand
}
