import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import packageFile from '../../../package.json' with { type: 'json' }

export type ProjectKind = 'node' | 'python' | 'react'

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
/** The packages that `npm run packages` has created in a clone. */
const PACKAGES = join(ROOT, 'dist/packages')

const CLIENT_SCRIPT = 'public/gatehouse-client.js'

/** The differences between the kinds of projects. */
interface Kind {
  /** Files of the project, and the examples that they are copied from. */
  readonly copied: Readonly<Record<string, string>>
  readonly scripts: Readonly<Record<string, string>>
  /** Lines of `.env`. */
  readonly settings: readonly string[]
  readonly ignored: readonly string[]
  readonly hasNodeBackend: boolean
  /** The example with further dependencies. */
  readonly manifest: string | null
}

const copiedFrom = (example: string, files: readonly string[], folder = ''): Record<string, string> =>
  Object.fromEntries(files.map((file) => [join(folder, file), `${example}/${file}`]))

const DEV = 'gatehouse dev --env-file .env'

const quickstart = (backend: string, command: string, hasNodeBackend: boolean): Kind => ({
  copied: copiedFrom('quickstart', [backend, 'openapi.yaml', 'relay.yaml', 'public/index.html', 'public/page.js']),
  scripts: {
    start: `npm run -s client && ${DEV} -- ${command} ${backend}`,
    client: `node -e "fs.copyFileSync('node_modules/gatehouse-client/browser.js', '${CLIENT_SCRIPT}')"`
  },
  settings: ['WEB_ROOT=public', 'GATEWAY_ROUTES=openapi.yaml', 'GATEWAY_UNKNOWN_PATHS=refuse'],
  // The library is copied from its package at each start.
  ignored: [CLIENT_SCRIPT],
  hasNodeBackend,
  manifest: null
})

const KINDS: Readonly<Record<ProjectKind, Kind>> = {
  node: quickstart('backend.js', 'node', true),
  python: quickstart('backend.py', 'python3', false),
  react: {
    copied: {
      ...copiedFrom('orders', ['backend.js', 'relay.yaml']),
      ...copiedFrom(
        'react',
        ['index.html', 'main.tsx', 'App.tsx', 'style.css', 'vite.config.ts', 'tsconfig.json'],
        'web'
      )
    },
    scripts: { start: `${DEV} --web 'vite web' -- node backend.js`, build: 'vite build web' },
    settings: ['# The web application after npm run build, without Vite.', '# WEB_ROOT=web/dist'],
    ignored: ['web/dist/'],
    hasNodeBackend: true,
    manifest: 'react'
  }
}

const readExample = (path: string): string => readFileSync(join(ROOT, 'examples', path), 'utf8')

/** The files of a new project with generated secrets. */
export const projectFiles = (folder: string, kind: ProjectKind): Project => {
  const email = 'ada@example.com'
  const password = randomBytes(6).toString('hex')
  const { copied, ignored, settings } = KINDS[kind]
  return {
    email,
    password,
    install: existsSync(PACKAGES) ? `npm install '${PACKAGES}'/*.tgz` : 'npm install',
    files: [
      { path: 'package.json', content: `${JSON.stringify(manifestOf(folder, KINDS[kind]), null, 2)}\n` },
      { path: '.env', content: environmentFile(settings, email, password), isSecret: true },
      { path: '.gitignore', content: `${['.env', 'logs/', 'node_modules/', ...ignored].join('\n')}\n` },
      ...Object.entries(copied).map(([path, example]) => ({ path, content: readExample(example) }))
    ]
  }
}

const manifestOf = (folder: string, { scripts, hasNodeBackend, manifest }: Kind) => {
  const range = `^${packageFile.version}`
  const name = basename(resolve(folder))
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+/, '')
  const example = manifest === null ? {} : JSON.parse(readExample(`${manifest}/package.json`))
  return {
    name: name === '' ? 'orders' : name,
    private: true,
    type: 'module',
    scripts,
    dependencies: {
      ...example.dependencies,
      'gatehouse-client': range,
      'gatehouse-server': range,
      ...(hasNodeBackend && { 'gatehouse-backend': range, jsonwebtoken: '^9.0.3' })
    },
    ...(example.devDependencies && { devDependencies: example.devDependencies })
  }
}

const secret = (): string => randomBytes(32).toString('hex')

const environmentFile = (
  settings: readonly string[],
  email: string,
  password: string
): string => `# Settings of all programs: docs/reference/configuration.md of Gatehouse.
# \`gatehouse dev\` adds free ports and the addresses that follow from them; set GATEWAY_PORT, RELAY_PORT or PORT to fix one.
# All checks are on, as in production.
NODE_ENV=production
CSP_MODE=hardened
CSP_INLINE=refuse
${settings.join('\n')}

# Relay
RELAY_CONFIG=relay.yaml
RELAY_WARM_UP=false

# The account of the example backend, which \`gatehouse dev\` shows.
DEV_ACCOUNT=${email}
PASSWORD=${password}

# Secrets: signs app tokens; signs tokens for the relay; permits to publish.
API_SECRET=${secret()}
REALTIME_HMAC_SECRET=${secret()}
REALTIME_API_KEY=${secret()}
`
