import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ROOT } from './root.js'

/** Formats a generated source file as `npm run format` would. */
export const formatSource = (text: string, file: string): string => {
  const { stdout, stderr, status } = spawnSync(
    join(ROOT, 'node_modules/.bin/biome'),
    ['check', '--write', `--stdin-file-path=${file}`],
    { input: text, encoding: 'utf8', cwd: ROOT }
  )
  if (status !== 0) throw new Error(`biome could not format ${file}: ${stderr}`)
  return stdout
}
