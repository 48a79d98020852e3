import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import packageFile from '../../package.json' with { type: 'json' }
import { ROOT } from '../../scripts/lib/root.js'

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

/** The oldest version of each supported line, such as 20.19 and 24. */
const versions = packageFile.engines.node
  .split(' || ')
  .map((range) => /^\^([\d.]+?)(?:\.0)*$/.exec(range)?.[1] ?? range)
const majors = versions.map((version) => Number.parseInt(version, 10))
const newest = Math.max(...majors)

/** As pages say it: `20.19, 22.12 or 24`. */
const text = `${versions.slice(0, -1).join(', ')} or ${versions.at(-1)}`

t.test('the engines of package.json are lines of Node.js, oldest first', async (t) => {
  t.ok(versions.length > 1)
  t.same(
    majors,
    majors.toSorted((a, b) => a - b)
  )
})

t.test('the pages that say which Node.js is needed name the engines of package.json', async (t) => {
  for (const page of ['README.md', 'src/cli/README.md', 'docs/reference/packages.md'])
    t.match(read(page), `Node.js ${text}`, page)
  t.match(read('docs/reference/stability.md'), `\n| Node.js | ${text},`)
})

t.test('no page requires another Node.js than package.json', async (t) => {
  const pages = ['README.md', 'CONTRIBUTING.md', 'docs/tutorials/demo.md']
  for (const page of pages)
    for (const [found] of read(page).matchAll(/Node\.js \d+\.\d+.{0,15}/g)) t.match(found, `Node.js ${text}`, page)
})

t.test('the workflow tests every supported line of Node.js', async (t) => {
  const { jobs } = parse(read('.github/workflows/test.yml'))
  t.same(jobs.test.strategy.matrix.node, majors)
})

t.test('images contain the newest supported Node.js, and releases are built with it', async (t) => {
  for (const file of ['Dockerfile.gateway', 'Dockerfile.relay', 'demo/Dockerfile'])
    t.match(read(file), new RegExp(`^ARG NODE_IMAGE=node:${newest}\\.`, 'm'), file)
  t.match(read('.github/workflows/release.yml'), `node-version: ${newest}\n`)
})

t.test('the types of Node.js are those of the oldest supported version', async (t) =>
  t.match(packageFile.devDependencies['@types/node'], new RegExp(`^${versions[0]?.replace('.', '\\.')}\\.`))
)
