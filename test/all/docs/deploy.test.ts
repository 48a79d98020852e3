import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { environment } from '../../helper/environment.js'
import { freePort } from '../../helper/free-port.js'
import { makeCertificate } from '../deploy/certificate.js'
import { debianConf, localSite } from '../deploy/proxies.js'
import { runTool } from '../deploy/tool.js'
import { commandBlocks, DocumentedShell, expectedOutput, hasFragments } from './command-blocks.js'

const SECRETS = ['api_secret', 'realtime_hmac_secret', 'realtime_api_key']

t.test('the install commands of the deploy page replace no secret and no setting when they are repeated', async (t) => {
  const folder = t.testdir()
  const page = readFileSync(join(ROOT, 'docs/how-to/deploy.md'), 'utf8')
  const install = commandBlocks(page).find(({ commands }) => commands.includes('openssl rand'))
  const commands = (install?.commands ?? '')
    .split('\n')
    .filter((line) => !/^(?:deploy\/systemd\/gatehouse-release|systemctl) /.test(line))
    .join('\n')
    .replaceAll('/etc/', `${folder}/etc/`)
    .replaceAll('/usr/local/sbin/', `${folder}/`)
  mkdirSync(join(folder, 'etc/systemd/system'), { recursive: true })
  const shell = new DocumentedShell(t, ROOT, { PATH: environment.path })
  const read = (name: string): string => readFileSync(join(folder, 'etc/gatehouse', name), 'utf8')

  await shell.run(commands)
  const before = SECRETS.map(read)
  for (const [index, name] of SECRETS.entries()) {
    t.match(before[index], /^[0-9a-f]{64}\n$/)
    t.equal(statSync(join(folder, 'etc/gatehouse', name)).mode & 0o777, 0o600)
  }
  t.ok(existsSync(join(folder, 'etc/systemd/system/gatehouse-relay@.service')))
  await shell.run(`echo CHANGED=1 >> ${folder}/etc/gatehouse/relay.env`)
  await shell.run(commands)
  t.same(SECRETS.map(read), before)
  t.match(read('relay.env'), 'CHANGED=1')
})

t.test('nginx accepts its configuration after the documented copy of the shipped files', async (t) => {
  const folder = t.testdir({ 'conf.d': {} })
  const page = readFileSync(join(ROOT, 'docs/how-to/deploy.md'), 'utf8')
  const copy = commandBlocks(page).find(({ commands }) => commands.includes('/etc/nginx/conf.d/'))
  const shell = new DocumentedShell(t, ROOT, { PATH: environment.path })
  await shell.run((copy?.commands ?? '').replaceAll('/etc/nginx', folder))

  const file = join(folder, 'conf.d/gatehouse.conf')
  const ports = { port: await freePort(), plainPort: await freePort() }
  const certificate = await makeCertificate(t, folder)
  writeFileSync(file, localSite(readFileSync(file, 'utf8'), { folder, certificate, ...ports }))
  writeFileSync(join(folder, 'nginx.conf'), debianConf(folder, join(folder, 'conf.d/*.conf')))
  await runTool(t, 'nginx', ['-t', '-c', join(folder, 'nginx.conf')])
})

t.test('a documented shell keeps folder, variables and functions, and reports a failed command', async (t) => {
  const shell = new DocumentedShell(t, t.testdir({ inner: {} }), { PATH: environment.path })
  await shell.run('cd inner; export A=1; b="two words"; say() { echo "$A $b"; }')
  t.equal(await shell.run('say; basename "$PWD"'), '1 two words\ninner\n')
  await t.rejects(shell.run('false; echo not reached'), /exit code 1/)
})

t.test('expected output consists of fragments in order', async (t) => {
  t.same(expectedOutput('echo # no\n# a … b\n'), [['a', 'b']])
  t.ok(hasFragments('x a y b', ['a', 'b']))
  t.notOk(hasFragments('x b y a', ['a', 'b']))
})
