import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { hasHelm, prepareHelm } from '../../../scripts/lib/kubernetes-tools.js'
import { ROOT } from '../../../scripts/lib/root.js'
import { thisMachine } from '../../../scripts/lib/services.js'
import { environment } from '../../helper/environment.js'
import { freePort } from '../../helper/free-port.js'
import { startRedis } from '../../helper/redis.js'
import { scriptArguments } from '../../helper/script.js'
import { type CommandBlock, commandBlocks, DocumentedShell, expectedOutput, hasFragments } from './command-blocks.js'

const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

const IGNORED = new Set(['node_modules', '.git', 'dist', '.test-build', '.bench', '.tap'])

const pagesIn = (folder = ''): string[] =>
  readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return IGNORED.has(entry.name) ? [] : pagesIn(path)
    return path.endsWith('.md') ? [path] : []
  })

/** The last block of a language that contains a text. */
const blockWith = (page: string, language: string, text = ''): string =>
  [...read(page).matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))]
    .map(([, block = '']) => block)
    .findLast((block) => block.includes(text)) ?? ''

/** Pages with a test of their own. */
const TUTORIALS = ['docs/tutorials/demo.md', 'docs/tutorials/first-backend.md', 'README.md']

type Replacement = readonly [from: string, to: string]

interface Execution {
  /** The working folder; default: the project. */
  readonly folder?: string
  readonly variables?: Readonly<Record<string, string>>
  /** What is different here; each text must occur. */
  readonly replacements?: readonly Replacement[]
  /** Blocks are executed twice, as by a reader who repeats them. */
  readonly isRepeated?: boolean
  /** Runs before the first block. */
  readonly before?: (shell: DocumentedShell) => Promise<unknown>
}

const SECRETS = { REALTIME_HMAC_SECRET: '0123456789abcdef'.repeat(4), REALTIME_API_KEY: 'fedcba9876543210'.repeat(4) }

/** How the blocks of each other page are executed. */
const PAGES: Readonly<Record<string, (t: Test) => Promise<Execution>>> = {
  'docs/how-to/backup-and-restore.md': async (t) => ({
    replacements: [
      ['/var/backups/', `${t.testdir({ etc: { gatehouse: { 'relay.env': 'A=1' } } })}/var/backups/`],
      [' -C / ', ` -C '${t.testdirName}' `],
      [' -C /\n', ` -C '${t.testdirName}'\n`]
    ],
    isRepeated: true
  }),
  'docs/how-to/custom-routes.md': async (t) => ({
    folder: t.testdir({ 'openapi.yaml': blockWith('docs/how-to/custom-routes.md', 'yaml') }),
    variables: { GATEWAY_PORT: '0', BACKEND_URL: 'http://127.0.0.1:1', AUDIT_LOG_FILE: 'audit.jsonl' }
  }),
  'docs/how-to/deploy.md': async (t) => ({ ...machine(t), isRepeated: true }),
  'docs/how-to/troubleshoot.md': async (t) => {
    const [gatewayPort, relayPort] = [String(await freePort()), String(await freePort())]
    const redis = await startRedis(t)
    return {
      variables: {
        NODE_ENV: 'development',
        GATEWAY_PORT: gatewayPort,
        RELAY_PORT: relayPort,
        BACKEND_URL: 'http://127.0.0.1:1',
        AUDIT_LOG_FILE: join(t.testdir(), 'audit.jsonl'),
        ...SECRETS
      },
      replacements: [
        ['3000', gatewayPort],
        ['8100', relayPort],
        ['-p 6379', `-p ${new URL(redis.url).port}`]
      ],
      before: async (shell) => {
        await shell.start('gatehouse relay')
        await shell.start('gatehouse gateway')
      }
    }
  },
  'docs/how-to/kubernetes.md': (t) => renderedChart(t),
  'docs/how-to/migrate-from-centrifugo.md': async (t) => ({
    folder: t.testdir({
      'config.json': blockWith('docs/how-to/migrate-from-centrifugo.md', 'json', '"chat"'),
      // Existing files are kept, so that the commands do not ask for the secrets.
      hmac_secret: SECRETS.REALTIME_HMAC_SECRET,
      api_key: SECRETS.REALTIME_API_KEY
    }),
    variables: { RELAY_PORT: '0', REDIS_URL: (await startRedis(t)).url }
  }),
  'docs/how-to/sdks.md': async (t) => {
    const port = String(await freePort())
    return {
      folder: t.testdir({ 'relay.json': blockWith('docs/how-to/sdks.md', 'json', 'telemetry') }),
      variables: { RELAY_PORT: port, RELAY_CONFIG: 'relay.json', ...SECRETS },
      replacements: [['8100', port]],
      before: (shell) => shell.start('gatehouse relay')
    }
  },
  'docs/how-to/rotate-secrets.md': async (t) => {
    const { variables, replacements } = machine(t)
    const root = t.testdirName
    for (const folder of ['etc/gatehouse', 'deploy/compose/secrets']) {
      mkdirSync(join(root, folder), { recursive: true })
      writeFileSync(join(root, folder, 'api_secret'), 'the old value')
    }
    return {
      folder: root,
      variables,
      replacements: [...replacements.slice(0, 1), ['$(git rev-parse --show-toplevel)', root]],
      isRepeated: true
    }
  },
  'docs/how-to/scale.md': async () => ({}),
  'docs/how-to/upgrade.md': async (t) => ({
    ...machine(t),
    isRepeated: true,
    // A machine on which another version is current.
    before: async () => {
      const root = join(t.testdirName, 'opt/gatehouse')
      mkdirSync(join(root, 'releases/0.0.9'), { recursive: true })
      symlinkSync('releases/0.0.9', join(root, 'current'))
      mkdirSync(join(t.testdirName, 'usr/local/sbin'), { recursive: true })
      cpSync(join(ROOT, 'deploy/systemd/gatehouse-release'), join(t.testdirName, 'usr/local/sbin/gatehouse-release'))
    }
  })
}

/** Renders the resources of the chart, because there is no cluster. */
const renderedChart = async (t: Test): Promise<Execution> => ({
  folder: t.testdir(),
  replacements: [
    [
      'helm upgrade --install gatehouse deploy/helm',
      `'${await prepareHelm(thisMachine(environment.all), () => undefined)}' template gatehouse '${ROOT}/deploy/helm' --kube-version 1.25`
    ]
  ],
  isRepeated: true
})

/** Two pages make a release. It is made once. */
const RELEASE = join(mkdtempSync(join(tmpdir(), 'gatehouse-release-')), 'release')
t.teardown(() => rmSync(dirname(RELEASE), { recursive: true, force: true }))

/** A folder in place of the root of a Debian machine. */
const machine = (t: Test): Required<Pick<Execution, 'variables' | 'replacements'>> => {
  const root = t.testdir()
  for (const folder of ['etc/systemd/system', 'etc/nginx/conf.d', 'etc/caddy', 'usr/local/sbin'])
    mkdirSync(join(root, folder), { recursive: true })
  writeFileSync(join(root, 'etc/caddy/Caddyfile'), '# The file of the package.\n')
  return {
    variables: { GATEHOUSE_ROOT: join(root, 'opt/gatehouse') },
    replacements: [
      ['/etc/', `${root}/etc/`],
      ['/usr/local/sbin/', `${root}/usr/local/sbin/`],
      // Installed and built already.
      [
        'npm ci && npm run release',
        `[ -e '${RELEASE}' ] || node ${scriptArguments('scripts/release.ts').join(' ')} --out '${RELEASE}'`
      ],
      ['dist/release/', `${RELEASE}/`]
    ]
  }
}

/** Programs that cannot run here. Their calls are recorded. */
const RECORDED = ['systemctl', 'gatehouse-restart', 'docker']

const shellFor = (t: Test, { folder = ROOT, variables = {} }: Execution): DocumentedShell => {
  if (!existsSync(t.testdirName)) t.testdir()
  const bin = join(t.testdirName, 'bin')
  mkdirSync(bin)
  symlinkSync(join(ROOT, 'dist/src/cli/main.js'), join(bin, 'gatehouse'))
  chmodSync(join(ROOT, 'dist/src/cli/main.js'), 0o755)
  for (const name of RECORDED) {
    writeFileSync(join(bin, name), `#!/bin/sh\necho "$*" >> '${t.testdirName}/${name}.calls'\n`, { mode: 0o755 })
  }
  const path = [bin, join(t.testdirName, 'usr/local/sbin'), environment.path].join(':')
  return new DocumentedShell(t, folder, { PATH: path, RELAY_WARM_UP: 'false', ...variables })
}

const isExecuted = ({ skipped }: CommandBlock): boolean => skipped === undefined

const skipOf = (page: string): string | false =>
  page === 'docs/how-to/kubernetes.md' && !hasHelm(thisMachine(environment.all)) ? 'Helm is not installed' : false

for (const [page, prepare] of Object.entries(PAGES)) {
  const skip = skipOf(page)
  t.test(`the command blocks of ${page} can be pasted one after the other`, { skip }, async (t) => {
    const execution = await prepare(t)
    const { replacements = [], isRepeated = false } = execution
    const blocks = commandBlocks(read(page)).filter(isExecuted)
    t.ok(blocks.length > 0)
    for (const [from] of replacements)
      t.ok(
        blocks.some(({ commands }) => commands.includes(from)),
        `${page} has a block with ${from}`
      )
    const shell = shellFor(t, execution)
    await execution.before?.(shell)
    for (const { commands, isServer } of blocks) {
      const text = replacements.reduce((all, [from, to]) => all.replaceAll(from, to), commands)
      if (isServer) await (await shell.start(text)).stop()
      else {
        const output = await shell.run(text)
        for (const fragments of expectedOutput(commands))
          t.ok(hasFragments(output, fragments), `${fragments} in ${output}`)
        if (isRepeated) await shell.run(text)
      }
      t.pass(commands)
    }
    for (const unit of unitsOf(t)) t.ok(existsSync(join(ROOT, 'deploy/systemd', unit)), unit)
  })
}

/** The unit files of the services that were passed to systemctl. */
const unitsOf = (t: Test): string[] => {
  const file = join(t.testdirName, 'systemctl.calls')
  const calls = existsSync(file) ? readFileSync(file, 'utf8') : ''
  return [...calls.matchAll(/(gatehouse-[a-z]+@)\d+/g)].map(([, name]) => `${name}.service`)
}

t.test('every page with command blocks is executed by a test', async (t) => {
  const pages = pagesIn().filter((page) => commandBlocks(read(page)).some(isExecuted))
  t.same(pages.toSorted(), [...Object.keys(PAGES), ...TUTORIALS].toSorted())
})

t.test('command blocks are valid shell commands without placeholders', async (t) => {
  for (const page of pagesIn()) {
    const blocks = commandBlocks(read(page))
    t.equal(blocks.length, [...read(page).matchAll(/^ *```(?:sh|bash|shell|console)\b/gm)].length, `marks of ${page}`)
    for (const { commands } of blocks) {
      // Comment lines are the expected output.
      t.notMatch(commands.replaceAll(/^#.*$/gm, ''), /…|<[a-z][a-z ]*>/, `${page}: ${commands}`)
      t.equal(spawnSync('bash', ['-n'], { input: commands }).status, 0, `${page}: ${commands}`)
    }
  }
})
