import type { TSchema } from '@sinclair/typebox'
import { isObject } from '../../shared/is-object.js'
import { type ReadFile, readConfigFile } from './file.js'
import { RelayConfigFileSchema } from './schema.js'

/**
 * For a file that comes from Centrifugo: the options without an effect, and those whose defaults are stricter here, if the file
 * does not set them. A file comes from Centrifugo if it has options for tokens and no option that only Gatehouse has.
 */
export const migrationNotes = (path: string, readFile: ReadFile): readonly string[] => {
  const notes: string[] = []
  const file = readConfigFile(path, readFile, [], null, notes)
  const client = file?.client ?? {}
  if (client.token === undefined || hasGatehouseOption(file, RelayConfigFileSchema)) return notes
  notes.push(note('client.token.expiry_required', 'exp'))
  if (client.subscription_token?.enabled) notes.push(note('client.subscription_token.expiry_required', 'exp'))
  if (client.disallow_anonymous_connection_tokens === undefined && !client.allow_anonymous_connect_without_token)
    notes.push(note('client.disallow_anonymous_connection_tokens', 'sub'))
  return notes
}

const note = (option: string, claim: string): string =>
  `${option} is not set: unlike Centrifugo, the relay rejects tokens without ${claim}. Set it to false if your backend signs such tokens`

const hasGatehouseOption = (value: unknown, schema: TSchema): boolean => {
  if (schema.description?.startsWith('Gatehouse only')) return true
  if (schema.type === 'array' && Array.isArray(value))
    return value.some((entry) => hasGatehouseOption(entry, schema.items))
  return (
    schema.type === 'object' &&
    isObject(value) &&
    Object.entries(value).some(([name, option]) => hasGatehouseOption(option, schema.properties?.[name] ?? {}))
  )
}
