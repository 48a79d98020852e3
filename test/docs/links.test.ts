import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/root.js'

const pages = [ROOT, join(ROOT, 'docs'), join(ROOT, 'docs/decisions')].flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))
)

const headings = (page: string): string[] =>
  [...readFileSync(page, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchor(heading))

/** As hosts of repositories make them. */
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

t.test('every link of a page leads somewhere', async (t) => {
  t.ok(pages.length > 15)
  for (const page of pages) t.same(brokenLinks(page), [], relative(ROOT, page))
})
