import { readFileSync } from 'node:fs'
import { relayConfig } from '../relay/config/config.js'
import { migrationNotes } from '../relay/config/migration-notes.js'
import { SettingsError } from '../shared/env.js'

/** In place of secrets that the environment provides at run time. */
const SECRET = '0'.repeat(64)

const readFile = (path: string): string => readFileSync(path, 'utf8')

/** The errors of a configuration file of the relay, one line each; empty if it is valid. */
export const checkConfigFile = (file: string): readonly string[] => {
  try {
    relayConfig({ RELAY_CONFIG: file, REALTIME_HMAC_SECRET: SECRET, REALTIME_API_KEY: SECRET }, readFile)
    return []
  } catch (error) {
    if (error instanceof SettingsError) return error.errors
    throw error
  }
}

/** Differences from Centrifugo that the file does not decide, one line each. */
export const configFileNotes = (file: string): readonly string[] => migrationNotes(file, readFile)
