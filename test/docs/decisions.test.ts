import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'

const FOLDER = join(ROOT, 'docs/decisions')

t.test('the index of decision records has number, title, date and status of every record', async (t) => {
  const index = readFileSync(join(FOLDER, 'README.md'), 'utf8')
  const rows = [...index.matchAll(/^\| \[(\d+)\]\((\S+)\) \| (.+) \| (\S+) \| (.+) \|$/gm)].map(
    ([, number, file, title, date, status]) => ({ number, file, title, date, status })
  )
  const records = readdirSync(FOLDER)
    .filter((name) => /^\d{4}-/.test(name))
    .toSorted()
    .map((file) => {
      const text = readFileSync(join(FOLDER, file), 'utf8')
      const [, number, title, date, status] =
        /^# (\d+)\. (.+)\n\nDate: (\d{4}-\d\d-\d\d) · Status: (.+)\n/.exec(text) ?? []
      return { number, file, title, date, status }
    })
  t.ok(records.length > 5)
  t.same(rows, records)
})
