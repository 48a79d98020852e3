import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'

const FOLDER = join(ROOT, 'dist/web')
const MAX_BYTES = 300 * 1024

const scriptsIn = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, name = '']) => name)

/** A script and those that it imports at once. Pages are imported when they are opened, with `import()`. */
const withImports = (name: string, found = new Set<string>()): Set<string> => {
  if (found.has(name)) return found
  found.add(name)
  const source = readFileSync(join(FOLDER, 'assets', name), 'utf8')
  for (const other of scriptsIn(source, /(?:from|import)\s*"\.\/([^"]+\.js)"/g)) withImports(other, found)
  return found
}

const compressedBytes = (names: Iterable<string>): number =>
  [...names].reduce((sum, name) => sum + statSync(join(FOLDER, 'assets', `${name}.gz`)).size, 0)

t.test('no page loads more than 300 KB of compressed script', async (t) => {
  const entries = scriptsIn(readFileSync(join(FOLDER, 'index.html'), 'utf8'), /src="\/assets\/([^"]+\.js)"/g)
  t.equal(entries.length, 1)
  const pages = readdirSync(join(FOLDER, 'assets')).filter((name) => /Page-[^.]+\.js$/.test(name))
  t.ok(pages.length > 7, `${pages.length} pages`)
  const sizes = pages.map((page) => {
    const scripts = new Set(entries.flatMap((entry) => [...withImports(entry)]))
    return [page, compressedBytes(withImports(page, scripts))] as const
  })
  for (const [page, bytes] of sizes) t.ok(bytes < MAX_BYTES, `${page.split('-')[0]}: ${Math.round(bytes / 1024)} KB`)
  t.ok(Math.min(...sizes.map(([, bytes]) => bytes)) > 50 * 1024, 'the entry is counted')
})
