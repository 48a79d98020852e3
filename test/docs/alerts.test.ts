import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { ROOT } from '../../scripts/lib/root.js'

interface AlertFile {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly labels: { readonly severity: string } }[]
  }[]
}

t.test('the operating page lists every alert with its severity, in the order of the file', async (t) => {
  const file: AlertFile = parse(readFileSync(join(ROOT, 'deploy/prometheus/gatehouse-alerts.yml'), 'utf8'))
  const page = readFileSync(join(ROOT, 'docs/reference/operating.md'), 'utf8')
  const rows = [...page.matchAll(/^\| `([A-Z]\w+)` \| (critical|warning) \|/gm)].map(([, alert, severity]) => ({
    alert,
    severity
  }))
  const alerts = file.groups.flatMap(({ rules }) =>
    rules.map(({ alert, labels: { severity } }) => ({ alert, severity }))
  )
  t.ok(alerts.length > 10)
  t.same(rows, alerts)
})
