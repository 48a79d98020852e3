import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ProgramCommand } from '../../src/cli/dev/running-program.js'
import { V8_FLAGS } from '../../src/shared/v8-flags.js'
import { relayConfigOf } from './relay-config.js'

type Env = Readonly<Record<string, string | undefined>>

/** One of the programs that make up the demo. */
export interface Program {
  readonly name: 'provider' | 'relay' | 'backend' | 'gateway'
  /** The file to run. */
  readonly entry: string
  /** The V8 flags of the container image and the systemd unit. */
  readonly nodeFlags: readonly string[]
  readonly port: number
  /** The setting that changes the port. */
  readonly portVariable: string
  readonly healthPath: string
  readonly env: Readonly<Record<string, string>>
}

export const healthUrl = ({ port, healthPath }: Program): string => `http://127.0.0.1:${port}${healthPath}`

/** How a program is started, beside the others. */
export const commandOf = (program: Program, base: Env): ProgramCommand => ({
  name: program.name,
  command: [process.execPath, ...program.nodeFlags, program.entry],
  env: { ...base, ...program.env },
  url: healthUrl(program)
})

export interface Stack {
  readonly programs: readonly Program[]
  readonly pageUrl: string
  readonly adminUrl: string
  readonly adminPassword: string
  readonly demoPassword: string
  readonly hasPage: boolean
  /** Whether users sign in through an identity provider. */
  readonly hasProvider: boolean
  /** The relay's configuration file, which must exist before the relay starts; null if the environment names another one. */
  readonly relayConfig: { readonly file: string; readonly content: object } | null
}

export interface StackOptions {
  /** The folder that contains `dist`. */
  readonly root: string
  /** A folder for generated files. */
  readonly folder: string
  /** Adds an identity provider on this machine. */
  readonly oidc?: boolean
  /** Logs each request. */
  readonly verbose?: boolean
  /** Whether the page is being built. */
  readonly buildsPage?: boolean
}

/** The programs of the demo with their environment. Secrets that are not set are generated for each start. */
export const stackOf = (env: Env, options: StackOptions): Stack => {
  const { root, folder, oidc = false, verbose = false, buildsPage = false } = options
  const port = (name: string, fallback: number): number => Number(env[name] || fallback)
  const [gatewayPort, relayPort, backendPort] = [
    port('GATEWAY_PORT', 3000),
    port('RELAY_PORT', 8100),
    port('DEMO_BACKEND_PORT', 4000)
  ]
  const tokenSecret = env.TOKEN_SECRET || env.API_SECRET || newSecret()
  // Requests are logged at the level info; they would scroll the accounts off the screen.
  const common = { LOG_LEVEL: env.LOG_LEVEL || (verbose ? 'info' : 'warn') }
  const realtime = {
    REALTIME_HMAC_SECRET: env.REALTIME_HMAC_SECRET || newSecret(),
    REALTIME_API_KEY: env.REALTIME_API_KEY || newSecret(),
    REALTIME_SIGNING_SECRET: env.REALTIME_SIGNING_SECRET || newSecret()
  }
  const adminPassword = env.RELAY_ADMIN_PASSWORD || newPassword()
  const demoPassword = env.DEMO_PASSWORD || newPassword()
  const pageUrl = `http://localhost:${gatewayPort}`
  // The gateway passes the realtime connections on to the relay, so the page needs one origin.
  const realtimeUrl = `ws://localhost:${gatewayPort}`
  const webRoot = env.WEB_ROOT || join(root, 'dist/web')
  const hasPage = buildsPage || existsSync(join(webRoot, 'index.html'))
  const exchangeSecret = env.EXCHANGE_SECRET || newSecret()
  const backendUrl = `http://127.0.0.1:${backendPort}`
  const relayConfig = env.RELAY_CONFIG ? null : { file: join(folder, 'relay.json'), content: relayConfigOf(backendUrl) }
  const provider = oidc ? providerOf(root, port('DEMO_OIDC_PORT', 9100), pageUrl) : null

  return {
    pageUrl,
    adminUrl: `http://localhost:${relayPort}/admin`,
    adminPassword,
    demoPassword,
    hasPage,
    hasProvider: oidc,
    relayConfig,
    programs: [
      ...(provider === null ? [] : [provider.program]),
      {
        name: 'relay',
        entry: join(root, 'dist/src/relay/main.js'),
        nodeFlags: V8_FLAGS.relay,
        port: relayPort,
        portVariable: 'RELAY_PORT',
        healthPath: '/health',
        env: {
          ...common,
          NODE_ENV: 'production',
          RELAY_PORT: String(relayPort),
          // Delays the start by a second, for hundreds of clients that return at once.
          RELAY_WARM_UP: env.RELAY_WARM_UP || 'false',
          // 5173 is the development server of `npx vite demo/web`.
          RELAY_ALLOWED_ORIGINS: `${pageUrl},http://127.0.0.1:${gatewayPort},http://localhost:5173`,
          RELAY_ADMIN_PASSWORD: adminPassword,
          ...(relayConfig !== null && { RELAY_CONFIG: relayConfig.file }),
          // The gateway forwards the addresses of the browsers.
          TRUST_PROXY: 'loopback',
          ...realtime
        }
      },
      {
        name: 'backend',
        entry: join(root, 'dist/demo/backend/main.js'),
        nodeFlags: [],
        port: backendPort,
        portVariable: 'DEMO_BACKEND_PORT',
        healthPath: '/api/health',
        env: {
          ...common,
          DEMO_BACKEND_PORT: String(backendPort),
          DEMO_PASSWORD: demoPassword,
          TOKEN_SECRET: tokenSecret,
          EXCHANGE_SECRET: exchangeSecret,
          REALTIME_PUBLISH_URL: `http://127.0.0.1:${relayPort}/api`,
          REALTIME_CLIENT_URL: `${realtimeUrl}/connection/websocket`,
          ...realtime
        }
      },
      {
        name: 'gateway',
        entry: join(root, 'dist/src/gateway/main.js'),
        nodeFlags: V8_FLAGS.gateway,
        port: gatewayPort,
        portVariable: 'GATEWAY_PORT',
        healthPath: '/api/health',
        env: {
          ...common,
          NODE_ENV: 'production',
          GATEWAY_PORT: String(gatewayPort),
          BACKEND_URL: backendUrl,
          API_SECRET: tokenSecret,
          EXCHANGE_SECRET: exchangeSecret,
          PUBLIC_URL: pageUrl,
          // The browser connects to the gateway on this machine without TLS.
          COOKIE_SECURE: 'false',
          RELAY_UPSTREAM: `http://127.0.0.1:${relayPort}`,
          // For a page that was opened at 127.0.0.1 instead of localhost.
          CSP_CONNECT_HOSTS: realtimeUrl,
          CSP_MODE: 'hardened',
          CSP_INLINE: 'refuse',
          API_DOCS: 'true',
          ...(hasPage && { WEB_ROOT: webRoot }),
          ...provider?.gatewayEnv
        }
      }
    ]
  }
}

/** The identity provider's program, and the gateway's settings for it. */
const providerOf = (root: string, port: number, pageUrl: string) => {
  const client = { id: 'gatehouse', secret: newSecret() }
  const program: Program = {
    name: 'provider',
    entry: join(root, 'dist/demo/oidc/provider.js'),
    nodeFlags: [],
    port,
    portVariable: 'DEMO_OIDC_PORT',
    healthPath: '/.well-known/openid-configuration',
    env: {
      DEMO_OIDC_PORT: String(port),
      DEMO_OIDC_CLIENT_ID: client.id,
      DEMO_OIDC_CLIENT_SECRET: client.secret,
      DEMO_OIDC_APP_URL: pageUrl
    }
  }
  const gatewayEnv = {
    OIDC_ISSUER: `http://127.0.0.1:${port}`,
    OIDC_CLIENT_ID: client.id,
    OIDC_CLIENT_SECRET: client.secret,
    SESSION_SECRET: newSecret()
  }
  return { program, gatewayEnv }
}

export const writeRelayConfig = async ({ relayConfig }: Stack): Promise<void> => {
  if (relayConfig !== null) await writeFile(relayConfig.file, JSON.stringify(relayConfig.content, null, 2))
}

const newSecret = (): string => randomBytes(32).toString('hex')

/** Short enough to be typed. */
const newPassword = (): string => randomBytes(6).toString('hex')
