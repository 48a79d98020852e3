import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { ROOT } from '../../../scripts/lib/root.js'
import { environment } from '../../helper/environment.js'
import { isSetting } from '../deploy/program-settings.js'
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

t.test('the first blocks of the rotation page keep the old secret as the previous one', async (t) => {
  const root = t.testdir({
    bin: {},
    etc: { gatehouse: { api_secret: 'the old value' } },
    deploy: { compose: { secrets: { api_secret: 'the old value' } } }
  })
  for (const name of ['systemctl', 'gatehouse-restart', 'docker'])
    writeFileSync(join(root, 'bin', name), '#!/bin/sh\n', { mode: 0o755 })
  const page = readPage('rotate-secrets.md')
  const shell = new DocumentedShell(t, root, { PATH: `${join(root, 'bin')}:${environment.path}` })
  const read = (name: string): string => readFileSync(join(root, name), 'utf8')

  const settings = new Set([...page.matchAll(/\b([A-Z_]+_PREVIOUS_FILE)\b/g)].map(([, name = '']) => name))
  t.same(
    [...settings].filter((name) => !isSetting('gateway', name) && !isSetting('relay', name)),
    [],
    'all settings exist'
  )
  for (const [folder, text] of [
    ['etc/gatehouse', 'previous.conf <<'],
    ['deploy/compose/secrets', 'docker-compose.override.yml <<']
  ] as const) {
    const block = blockWith(page, text)
      .replaceAll('/etc/', `${root}/etc/`)
      .replace('$(git rev-parse --show-toplevel)', root)
    for (const attempt of ['first', 'second']) {
      await shell.run(block)
      t.equal(read(`${folder}/api_secret_previous`), 'the old value', `after the ${attempt} time`)
      t.match(read(`${folder}/api_secret`), /^[0-9a-f]{64}\n$/)
    }
  }
  const { services, secrets } = parse(read('docker-compose.override.yml'))
  const file = services.gateway.environment.API_SECRET_PREVIOUS_FILE
  t.same(
    services.gateway.secrets.map((name: string) => `/run/secrets/${name}`),
    [file]
  )
  t.equal(read(secrets.api_secret_previous.file), 'the old value')
})
