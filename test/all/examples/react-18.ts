import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../../../scripts/lib/root.js'

const FOLDER = join(ROOT, 'node_modules/.cache/react-18')
const VERSION = '18.3.1'

/** Aliases for Vite that replace React by version 18, which is installed beside the project's own. */
export const withReact18 = async (): Promise<{ readonly find: RegExp; readonly replacement: string }> => {
  if (!existsSync(join(FOLDER, 'node_modules/react-dom'))) {
    await mkdir(FOLDER, { recursive: true })
    const packages = [`react@${VERSION}`, `react-dom@${VERSION}`]
    await promisify(execFile)('npm', ['install', '--prefix', FOLDER, '--no-audit', '--no-fund', ...packages])
  }
  return { find: /^(react|react-dom)(?=\/|$)/, replacement: join(FOLDER, 'node_modules/$1') }
}
