import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'

const MAX_BYTES = 150 * 1024
/** Built by `npm run build`. */
const built = join(ROOT, 'dist/relay-admin')

t.test("the operators' page", async (t) => {
  const files = readdirSync(built, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(built, name)).isFile()
  )
  const text = (name: string): string => readFileSync(join(built, name), 'utf8')

  t.test('the page is smaller than 150 KiB compressed', async (t) => {
    const bytes = files.reduce((sum, name) => sum + gzipSync(text(name)).length, 0)
    t.ok(bytes < MAX_BYTES, `${bytes} bytes compressed`)
  })

  t.test('all assets have a content hash in their name', async (t) => {
    for (const name of files) t.match(name, /^(index\.html|assets\/[\w-]+-[\w-]{8}\.(js|css|svg))$/)
  })

  t.test('the page loads nothing from other hosts and complies with its Content-Security-Policy', async (t) => {
    const page = text('index.html')
    t.notMatch(page, /<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc="\/admin\/assets\/)/)
    t.notMatch(page, /(?:src|href)="(?!\/admin\/assets\/)/)
    for (const name of files.filter((one) => one.endsWith('.css'))) t.notMatch(text(name), /url\(|@import/)
  })
})
