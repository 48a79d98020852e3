import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../src/shared/is-object.js'
import type { Json } from '../helper/raw-client.js'
import { API_KEY, type ConfigFile, configOf, HMAC_SECRET } from '../helper/relay-rules.js'

const BASE: ConfigFile = { client: { token: { hmac_secret_key: HMAC_SECRET } }, http_api: { key: API_KEY } }

/** Empty, because the environment wins over the file. */
export const NO_ENVIRONMENT = { REALTIME_HMAC_SECRET: '', REALTIME_API_KEY: '', RELAY_PORT: '' }

export const configOfFile = (file: ConfigFile) => configOf(file, NO_ENVIRONMENT)

/** Merges objects, and the entries of two lists of objects with the same index. */
export function merged(one: ConfigFile, other: ConfigFile): ConfigFile {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries([...names].map((name) => [name, mergedValue(one[name], other[name])]))
}

function mergedValue(one: unknown, other: unknown): unknown {
  if (isObject(one) && isObject(other)) return merged(one, other)
  if (Array.isArray(one) && Array.isArray(other) && [...one, ...other].every(isObject)) {
    const length = Math.max(one.length, other.length)
    return Array.from({ length }, (_, index) => mergedValue(one[index], other[index]))
  }
  return other === undefined ? one : other
}

/** A file in which one option has this value; undefined leaves it out. A list `namespaces[]` gets one entry, named `room`. */
export const fileWith = (path: string, value: unknown, also: ConfigFile = {}): ConfigFile => {
  const base = merged(BASE, also)
  if (value === undefined) return base
  const option = ([step = '', ...rest]: readonly string[]): ConfigFile => {
    if (!step.endsWith('[]')) return { [step]: rest.length === 0 ? value : option(rest) }
    const entry = option(rest)
    const isNamed = step !== 'namespaces[]' || isDeepStrictEqual(Object.keys(entry), ['name'])
    return { [step.slice(0, -2)]: [isNamed ? entry : { name: 'room', ...entry }] }
  }
  return merged(base, option(path.split('.')))
}

/** A file with one namespace. */
export const room = (options: Json): ConfigFile => ({ channel: { namespaces: [{ name: 'room', ...options }] } })
