import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'

const markdownIn = (folder: string, recursive: boolean): string[] =>
  readdirSync(folder, { recursive, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))

const pages = [...markdownIn(ROOT, false), ...markdownIn(join(ROOT, 'docs'), true)]

const headings = (page: string): string[] =>
  [...readFileSync(page, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchor(heading))

/** The fragment that repository hosts generate for a heading. */
const anchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

const brokenLinks = (page: string): string[] =>
  [...readFileSync(page, 'utf8').matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [path = '', fragment] = link.split('#')
      const target = path === '' ? page : join(dirname(page), path)
      return !existsSync(target) || (fragment !== undefined && !headings(target).includes(fragment))
    })

/** Created by `deploy/compose/make-secrets.sh`, not part of the repository. */
const GENERATED = /^deploy\/compose\/secrets\b/

/** Paths of the repository that a text names in backticks, without those that contain a placeholder. */
const namedPaths = (text: string): string[] =>
  [...text.matchAll(/`((?:bench|demo|deploy|docs|examples|schemas|scripts|src|test)\/[^`\s]*)`/g)]
    .map(([, path = '']) => path)
    .filter((path) => !/[*<>{}…]/.test(path) && !GENERATED.test(path))

const missingPaths = (text: string): string[] => namedPaths(text).filter((path) => !existsSync(join(ROOT, path)))

t.test('every link in the docs has a target', async (t) => {
  t.ok(pages.length > 15)
  for (const page of pages) t.same(brokenLinks(page), [], relative(ROOT, page))
})

t.test('the index of the docs links every page', async (t) => {
  const index = readFileSync(join(ROOT, 'docs/README.md'), 'utf8')
  const listed = markdownIn(join(ROOT, 'docs'), true)
    .map((page) => relative(join(ROOT, 'docs'), page))
    // Decision records have an index of their own.
    .filter((page) => page !== 'README.md' && !/^decisions\/\d/.test(page))
  t.same(
    listed.filter((page) => !index.includes(`](${page})`)),
    []
  )
})

t.test('every file or folder that the docs name exists', async (t) => {
  // The changelog also names files of earlier versions.
  for (const page of pages.filter((page) => basename(page) !== 'CHANGELOG.md'))
    t.same(missingPaths(readFileSync(page, 'utf8')), [], relative(ROOT, page))
})

t.test('a missing file in backticks is found', async (t) => {
  t.same(missingPaths('`src/gateway/main.ts`, `src/gateway/no-such-file.ts` and `src/*.ts`'), [
    'src/gateway/no-such-file.ts'
  ])
})

t.test('the guide to a new engine names every interface of an engine', async (t) => {
  const source = readFileSync(join(ROOT, 'src/relay/core/engine.ts'), 'utf8')
  const [, body = ''] = /^export interface Engine \{\n(.*?)^\}/ms.exec(source) ?? []
  const interfaces = [...body.matchAll(/^ {2}readonly \w+: ([A-Z]\w+)$/gm)].map(([, name = '']) => name)
  t.ok(interfaces.length > 5)
  const guide = readFileSync(join(ROOT, 'docs/how-to/extend.md'), 'utf8')
  t.same(
    interfaces.filter((name) => !guide.includes(`\`${name}\``)),
    []
  )
})
