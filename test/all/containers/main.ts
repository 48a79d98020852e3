/**
 * `npm run test:containers`, as root: builds the images with Debian's buildah on substitutes for their base images, then
 * runs their programs as a container engine would and checks them.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { print, runCommand, UsageError, UserError } from '../../../scripts/lib/command.js'
import { ROOT } from '../../../scripts/lib/root.js'
import { prepareServices, programOf, type Service, thisMachine } from '../../../scripts/lib/services.js'
import { freePort } from '../../helper/free-port.js'
import { BASE_IMAGES, prepareBaseImages } from './base-images.js'
import { Buildah } from './buildah.js'
import { Checks, contentsOf } from './checks.js'
import { Container } from './container.js'
import { IMAGES, type ImageTest } from './images.js'

const USAGE = `Usage: npm run test:containers [-- <image> ...]

The images are ${Object.keys(IMAGES).join(', ')}; without arguments all of them are checked.`

/** Kept between runs, because the base images take a minute. */
const STORAGE = '/var/tmp/gatehouse-containers'

const debootstrap: Service = { name: 'debootstrap', programs: ['debootstrap'], aptPackage: 'debootstrap' }
const TOOLS: readonly Service[] = [{ name: 'buildah', programs: ['buildah'], aptPackage: 'buildah' }, debootstrap]

const npmSetting = (name: string): string => execFileSync('npm', ['config', 'get', name], { encoding: 'utf8' }).trim()

const build = (buildah: Buildah, name: string, dockerfile: string, folder: string): string => {
  // npm in the build uses this machine's registry and cache.
  const npmrc = join(folder, 'npmrc')
  writeFileSync(
    npmrc,
    `registry=${npmSetting('registry')}\ncafile=/etc/ssl/certs/ca-certificates.crt\nprefer-offline=true\n`
  )
  const tag = `localhost/gatehouse-${name}:test`
  buildah.build({
    context: ROOT,
    dockerfile: join(ROOT, dockerfile),
    tag,
    args: BASE_IMAGES,
    secrets: { npmrc },
    volumes: [`${npmSetting('cache')}:/root/.npm`]
  })
  return tag
}

const checkImage = async (
  buildah: Buildah,
  tag: string,
  { scenario: setUp, forbiddenFiles, maxMb }: ImageTest,
  checks: Checks
) => {
  const image = buildah.inspect(tag)
  const { config } = image.Docker
  checks.that(
    'has labels',
    ['title', 'licenses'].every((name) => `org.opencontainers.image.${name}` in config.Labels)
  )
  checks.that('does not run as root', /^[1-9]\d*:[1-9]\d*$/.test(config.User), config.User)

  await buildah.with(tag, async (root) => {
    const files = contentsOf(root)
    const size = sizeOf(files)
    checks.that(
      maxMb === undefined ? 'has a size' : `takes less than ${maxMb} MB`,
      size.total < (maxMb ?? Infinity),
      size
    )
    const forbidden = [...files.keys()].filter((file) => forbiddenFiles.some((pattern) => pattern.test(file)))
    checks.that('contains no sources, tests or tools', forbidden.length === 0, forbidden.slice(0, 5).join(', '))

    const secrets = mkdtempSync(join(tmpdir(), 'gatehouse-secrets-'))
    const port = await freePort()
    const scenario = await setUp(port)
    for (const [name, text] of Object.entries(scenario.secrets))
      writeFileSync(join(secrets, name), text, { mode: 0o444 })
    execFileSync('chmod', ['755', secrets])
    const container = new Container(image, root, { env: scenario.env, secrets })
    try {
      await container.listening()
      checkProcess(container, config.User, checks)
      checks.that('its health check succeeds', container.healthCheck() === 0)
      await scenario.check(checks, `http://127.0.0.1:${port}`)
      checks.that('its health check fails when nothing listens', container.healthCheck(NOWHERE) === 1)
      const code = await container.stop('SIGTERM')
      checks.that('exits with 0 on SIGTERM', code === 0, code)
    } catch (error) {
      checks.that('runs', false, `${error instanceof Error ? error.stack : error}\n${container.printed}`)
    } finally {
      await container.end()
      await scenario.close()
      rmSync(secrets, { recursive: true })
    }
  })
}

/** In millions of bytes, as container engines count. */
const sizeOf = (files: ReadonlyMap<string, number>) => {
  const sum = (isCounted: (file: string) => boolean): number =>
    Math.round([...files].reduce((bytes, [file, size]) => bytes + (isCounted(file) ? size : 0), 0) / 1e5) / 10
  const isNode = (file: string): boolean => file === '/usr/local/bin/node'
  const isOurs = (file: string): boolean => file.startsWith('/app/')
  return {
    total: sum(() => true),
    base: sum((file) => !isNode(file) && !isOurs(file)),
    node: sum(isNode),
    ours: sum(isOurs)
  }
}

const NOWHERE = { GATEWAY_PORT: '1', RELAY_PORT: '1', DEMO_BACKEND_PORT: '1' }

const checkProcess = (container: Container, user: string, checks: Checks): void => {
  const ids = [container.status('Uid'), container.status('Gid')].map((text) => text.split('\t')[0]).join(':')
  checks.that('runs as its user', ids === user, ids)
  const [, inside] = container.status('NSpid').split('\t')
  checks.that('is process 1', inside === '1' && /(^|\/)node$/.test(container.command), container.command)
  checks.that('runs on a read-only root', container.rootOptions.includes('ro'), container.rootOptions.join())
  checks.that('has no capability', /^0+$/.test(container.status('CapEff')) && container.status('NoNewPrivs') === '1')
}

const main = async (args: readonly string[]): Promise<number> => {
  const { positionals } = parseArgs({ args: [...args], options: {}, allowPositionals: true })
  for (const name of positionals) if (!Object.hasOwn(IMAGES, name)) throw new UsageError(`there is no image ${name}`)
  if (process.getuid?.() !== 0) throw new UserError('chroot and mount need root: sudo npm run test:containers')
  const machine = thisMachine(process.env)
  await prepareServices(TOOLS, machine, print)
  const tools = { debootstrap: programOf(debootstrap, machine) ?? '', npm: machine.find('npm') ?? '' }
  const buildah = new Buildah(STORAGE)
  await prepareBaseImages(buildah, tools, print)

  const checks = new Checks(print)
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-build-'))
  try {
    for (const [name, image] of Object.entries(IMAGES)) {
      if (positionals.length > 0 && !positionals.includes(name)) continue
      print(`== ${name}: building ${image.dockerfile} …`)
      const tag = build(buildah, name, image.dockerfile, folder)
      await checkImage(buildah, tag, image, checks)
      buildah.remove(tag)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  print(checks.failed === 0 ? 'all checks passed' : `${checks.failed} checks failed`)
  return checks.failed === 0 ? 0 : 1
}

await runCommand(USAGE, main)
