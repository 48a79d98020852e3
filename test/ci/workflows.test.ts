import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { ROOT } from '../../scripts/lib/root.js'

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
    Record<string, { readonly permissions?: Permissions; readonly 'timeout-minutes'?: number; readonly steps: Step[] }>
  >
}

/** Jobs with more permissions than reading the code. */
const JOB_PERMISSIONS: Readonly<Record<string, Permissions>> = {
  'images.yml publish': { contents: 'read', packages: 'write' },
  'release.yml release': { contents: 'write' }
}

const workflows = readdirSync(FOLDER).map((name) => {
  const text = readFileSync(join(FOLDER, name), 'utf8')
  const workflow: Workflow = parse(text)
  return { name, text, workflow }
})

t.same(
  workflows.map(({ name }) => name),
  ['images.yml', 'release.yml', 'test.yml']
)

for (const { name, text, workflow } of workflows) {
  const jobs = Object.entries(workflow.jobs)
  const steps = jobs.flatMap(([, job]) => job.steps)

  t.test(name, async (t) => {
    t.test(`${name} pins actions to a commit and notes the version`, async (t) => {
      const uses = [...text.matchAll(/uses: *(.*)$/gm)].map(([, value = '']) => value)
      t.equal(uses.length, steps.filter((step) => step.uses !== undefined).length)
      for (const value of uses) t.match(value, /^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
    })

    t.test(`${name} has read permission only, except for listed jobs`, async (t) => {
      t.same(workflow.permissions, { contents: 'read' })
      for (const [job, { permissions }] of jobs) t.same(permissions, JOB_PERMISSIONS[`${name} ${job}`], job)
    })

    t.test(`${name} does not store the token in the working copy`, async (t) => {
      const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'))
      t.equal(checkouts.length, jobs.length)
      for (const checkout of checkouts) t.equal(checkout.with?.['persist-credentials'], false)
    })

    t.test(`${name} does not interpolate expressions into shell commands`, async (t) => {
      t.notOk('pull_request_target' in workflow.on)
      for (const { run = '' } of steps) t.notMatch(run, '${{')
    })

    t.test(`${name} has a timeout for every job`, async (t) => {
      for (const [job, { 'timeout-minutes': minutes }] of jobs) t.type(minutes, 'number', job)
    })
  })
}

t.test('the tests run on all supported versions of Node.js', async (t) => {
  const [test] = workflows.filter(({ name }) => name === 'test.yml')
  t.match(test?.workflow.jobs.test, { strategy: { matrix: { node: [20, 22, 24] } } })
})

t.test('all npm scripts that workflows call exist', async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  for (const [, script = ''] of workflows
    .map(({ text }) => text)
    .join('\n')
    .matchAll(/npm run ([\w:-]+)/g))
    t.ok(script in scripts, script)
})
