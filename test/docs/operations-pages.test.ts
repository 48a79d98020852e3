import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { environment } from '../helper/environment.js'
import { DocumentedShell } from './command-blocks.js'

const readPage = (name: string): string => readFileSync(join(ROOT, 'docs/how-to', name), 'utf8')

/** All code blocks of a page, also those in lists, without their indentation. */
const codeBlocks = (page: string): string[] =>
  [...page.matchAll(/^( *)```(?:sh)?\n(.*?)^\1```$/gms)].map(([, indentation = '', text = '']) =>
    text.replaceAll(new RegExp(`^${indentation}`, 'gm'), '')
  )

const blockWith = (page: string, text: string): string => {
  const block = codeBlocks(page).find((each) => each.includes(text))
  if (block === undefined) throw new Error(`no code block with ${text}`)
  return block
}

t.test('the commands of the backup page save and restore the configuration', async (t) => {
  const root = t.testdir()
  const secret = join(root, 'etc/gatehouse/api_secret')
  mkdirSync(join(root, 'etc/gatehouse'), { recursive: true })
  writeFileSync(secret, 'the secret', { mode: 0o600 })
  const page = readPage('backup-and-restore.md')
  const shell = new DocumentedShell(t, root, { PATH: environment.path })
  const run = (commands: string): Promise<string> =>
    shell.run(commands.replaceAll('/var/', `${root}/var/`).replaceAll('-C /', `-C ${root}/`))

  await run(blockWith(page, 'tar -czf'))
  rmSync(secret)
  await run(blockWith(page, 'tar -xzf'))

  t.equal(readFileSync(secret, 'utf8'), 'the secret')
  t.equal(statSync(secret).mode & 0o777, 0o600)
})
