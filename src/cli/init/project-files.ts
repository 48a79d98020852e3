import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import packageFile from '../../../package.json' with { type: 'json' }

export type Language = 'node' | 'python'

/** A file of a new project. */
export interface ProjectFile {
  readonly path: string
  readonly content: string
  /** Readable by its owner only. */
  readonly isSecret?: boolean
}

export interface Project {
  readonly files: readonly ProjectFile[]
  /** The command that installs the dependencies. */
  readonly install: string
  readonly email: string
  readonly password: string
}

/** The package or a clone: this file is dist/src/cli/init/project-files.js. */
const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
const EXAMPLE = join(ROOT, 'examples/quickstart')
/** The packages that `npm run packages` has created in a clone. */
const PACKAGES = join(ROOT, 'dist/packages')

/** The same files for every backend. */
const COPIED = ['openapi.yaml', 'relay.yaml', 'public/index.html', 'public/page.js']
const BACKENDS = {
  node: { file: 'backend.js', command: 'node backend.js' },
  python: { file: 'backend.py', command: 'python3 backend.py' }
} as const satisfies Record<Language, { readonly file: string; readonly command: string }>

const CLIENT_SCRIPT = 'public/gatehouse-client.js'

/** The files of a new project with generated secrets. */
export const projectFiles = (folder: string, language: Language): Project => {
  const password = randomBytes(6).toString('hex')
  const backend = BACKENDS[language]
  return {
    email: 'ada@example.com',
    password,
    install: existsSync(PACKAGES) ? `npm install '${PACKAGES}'/*.tgz` : 'npm install',
    files: [
      { path: 'package.json', content: `${JSON.stringify(manifestOf(folder, language), null, 2)}\n` },
      { path: '.env', content: environmentFile(password), isSecret: true },
      // The library is copied from its package at each start.
      { path: '.gitignore', content: `${['.env', 'logs/', 'node_modules/', CLIENT_SCRIPT].join('\n')}\n` },
      ...[backend.file, ...COPIED].map((path) => ({ path, content: readFileSync(join(EXAMPLE, path), 'utf8') }))
    ]
  }
}

const manifestOf = (folder: string, language: Language) => {
  const range = `^${packageFile.version}`
  const name = basename(resolve(folder))
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+/, '')
  return {
    name: name === '' ? 'orders' : name,
    private: true,
    type: 'module',
    scripts: {
      start: `npm run -s client && gatehouse dev --env-file .env -- ${BACKENDS[language].command}`,
      client: `node -e "fs.copyFileSync('node_modules/gatehouse-client/browser.js', '${CLIENT_SCRIPT}')"`,
      check: 'gatehouse check-config --env-file .env'
    },
    dependencies: {
      'gatehouse-client': range,
      'gatehouse-server': range,
      ...(language === 'node' && { 'gatehouse-backend': range, jsonwebtoken: '^9.0.3' })
    }
  }
}

const secret = (): string => randomBytes(32).toString('hex')

const environmentFile = (
  password: string
): string => `# Settings of all programs: docs/reference/configuration.md of Gatehouse.
# All checks are on, as in production. Only the cookies are not Secure, because this machine has no TLS.
NODE_ENV=production
COOKIE_SECURE=false

# Gateway: the only address that the browser uses.
GATEWAY_PORT=3000
PUBLIC_URL=http://localhost:3000
WEB_ROOT=public
BACKEND_URL=http://127.0.0.1:4000
GATEWAY_ROUTES=openapi.yaml
GATEWAY_UNKNOWN_PATHS=refuse
RELAY_UPSTREAM=http://127.0.0.1:8100
CSP_MODE=hardened
CSP_INLINE=refuse
CSP_CONNECT_HOSTS=ws://localhost:3000

# Relay
RELAY_PORT=8100
RELAY_CONFIG=relay.yaml
RELAY_WARM_UP=false

# Backend
PORT=4000
PASSWORD=${password}
REALTIME_CLIENT_URL=ws://localhost:3000/connection/websocket
REALTIME_PUBLISH_URL=http://127.0.0.1:8100/api

# Secrets: signs app tokens; signs tokens for the relay; permits to publish.
API_SECRET=${secret()}
REALTIME_HMAC_SECRET=${secret()}
REALTIME_API_KEY=${secret()}
`
