import { join } from 'node:path'
import { demoSettings } from '../../demo/backend/config.js'
import { gatewaySettings } from '../../src/gateway/settings.js'
import { relaySettings } from '../../src/relay/config/settings.js'
import type { Setting, Settings } from '../../src/shared/env.js'
import { publisherSettings } from '../../src/shared/publisher.js'
import { withTable } from './page-table.js'
import { ROOT } from './root.js'

export const CONFIGURATION_PAGE = join(ROOT, 'docs/reference/configuration.md')

/** Names of settings, or the first part of them before a `*`, by heading. */
type Topics = Readonly<Record<string, readonly string[]>>

const GATEWAY_TOPICS: Topics = {
  'Addresses of the gateway': [
    'NODE_ENV',
    'GATEWAY_HOST',
    'GATEWAY_PORT',
    'GATEWAY_ALLOW_DEVELOPMENT',
    'PUBLIC_URL',
    'TRUST_PROXY'
  ],
  Backend: ['BACKEND_*', 'GATEWAY_MAX_IN_FLIGHT', 'RELAY_UPSTREAM*'],
  'Revocation and limits': [
    'GATEWAY_INTERNAL_PORT',
    'GATEWAY_INTERNAL_HOST',
    'GATEWAY_INTERNAL_KEY',
    'GATEWAY_INTERNAL_KEY_PREVIOUS',
    'GATEWAY_MAX_TOKEN_AGE_S',
    'RELAY_API_URL',
    'REALTIME_API_KEY',
    'GATEWAY_LIMITS'
  ],
  'Several backends': ['GATEWAY_UPSTREAMS', 'GATEWAY_WEBSOCKET*'],
  'Routes and access': ['GATEWAY_*'],
  'Sessions, login and CSRF': ['API_SECRET*', 'LOGIN_*', 'CSRF_MODE', 'ALLOWED_ORIGINS', 'COOKIE_SECURE', 'REDIS_URL'],
  'Identity provider': ['OIDC_*', 'SESSION_SECRET', 'EXCHANGE_*'],
  'Content-Security-Policy': ['CSP_*'],
  'Sizes and slow clients': ['BODY_LIMIT', 'UPLOAD_LIMIT', 'RESPONSE_BUFFER', 'CLIENT_*'],
  'Web application, logs and probes': [
    'WEB_ROOT',
    'API_DOCS',
    'LOG_LEVEL',
    'AUDIT_LOG_FILE',
    'METRICS_ALLOW',
    'DATABASE_URL',
    'SHUTDOWN_DELAY_MS'
  ]
}

const RELAY_TOPICS: Topics = {
  'Addresses of the relay': ['NODE_ENV', 'RELAY_HOST', 'RELAY_PORT', 'RELAY_ALLOWED_ORIGINS', 'TRUST_PROXY'],
  'Secrets of the relay': ['REALTIME_*', 'RELAY_ADMIN_PASSWORD'],
  'Channels, workers and Redis': ['RELAY_CONFIG', 'RELAY_ENGINE', 'REDIS_URL', 'RELAY_*'],
  'Logs, metrics and shutdown of the relay': ['LOG_LEVEL', 'METRICS_ALLOW', 'SHUTDOWN_DELAY_MS']
}

/** Returns the page with every table of settings regenerated from the code. */
export const withCurrentTables = (page: string): string => {
  const tables = {
    gateway: settingsByTopic(gatewaySettings, GATEWAY_TOPICS),
    relay: settingsByTopic(relaySettings, RELAY_TOPICS),
    publisher: settingsTable(publisherSettings),
    demo: settingsTable(demoSettings)
  }
  return Object.entries(tables).reduce((text, [name, table]) => withTable(text, `settings of the ${name}`, table), page)
}

/** One table per topic. A setting belongs to the first topic that names it; without a topic there is an error. */
const settingsByTopic = (settings: Settings, topics: Topics): string => {
  const rest = new Map(Object.entries(settings))
  const take = (pattern: string): [string, Setting][] => {
    const names = pattern.endsWith('*')
      ? [...rest.keys()].filter((name) => name.startsWith(pattern.slice(0, -1)) && !isNamed(name, topics))
      : [pattern]
    return names.flatMap((name) => {
      const setting = rest.get(name)
      rest.delete(name)
      return setting === undefined ? [] : [[name, setting]]
    })
  }
  const tables = Object.entries(topics).flatMap(([topic, patterns]) => {
    const rows = patterns.flatMap(take)
    return rows.length === 0 ? [] : [`### ${topic}\n\n${settingsTable(Object.fromEntries(rows))}`]
  })
  if (rest.size > 0) throw new Error(`scripts/lib/settings-docs.ts has no topic for ${[...rest.keys()].join(', ')}`)
  return `\n${tables.join('\n\n')}\n`
}

const isNamed = (name: string, topics: Topics): boolean => Object.values(topics).flat().includes(name)

const settingsTable = (settings: Settings): string =>
  [
    '| variable | default | must be | meaning |',
    '|---|---|---|---|',
    ...Object.entries(settings).map(
      ([name, setting]) => `| \`${name}\` | ${defaultText(setting)} | ${setting.rule} | ${setting.about} |`
    )
  ].join('\n')

const KIB = 1024
const MIB = 1024 * KIB

const sizeText = (bytes: number): string => (bytes < MIB ? `${bytes / KIB}KiB` : `${bytes / MIB}MiB`)

const defaultText = ({ fallback, unit }: Setting): string => {
  if (fallback === null) return 'unset'
  if (Array.isArray(fallback)) return fallback.length === 0 ? 'empty' : `\`${fallback.join(',')}\``
  return `\`${unit === 'bytes' ? sizeText(Number(fallback)) : String(fallback)}\``
}
