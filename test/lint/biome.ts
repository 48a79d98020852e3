import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ROOT } from '../../scripts/lib/root.js'

interface Diagnostic {
  readonly category: string
  readonly location: { readonly path: string | { readonly file: string } }
}

/** Lints files, given by path and text, with the project's configuration. Returns those that break the rule. */
export const rejectedFiles = (files: Readonly<Record<string, string>>, rule: string): Set<string> => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-lint-'))
  try {
    cpSync(join(ROOT, 'biome.json'), join(folder, 'biome.json'))
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    const { stdout } = spawnSync(
      join(ROOT, 'node_modules/.bin/biome'),
      ['lint', '--max-diagnostics=none', '--reporter=json', '.'],
      { cwd: folder, encoding: 'utf8' }
    )
    const diagnostics: readonly Diagnostic[] = JSON.parse(stdout).diagnostics
    return new Set(
      diagnostics
        .filter(({ category }) => category === rule)
        .map(({ location: { path } }) => (typeof path === 'string' ? path : path.file))
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}
