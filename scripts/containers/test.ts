/**
 * `npm run test:containers`, as root: builds the images for real, with Debian's buildah and without a container engine, on
 * stand-ins for their base images; then runs what is in them as a container engine would, and looks.
 * `npm run test:containers -- gateway` is for one of them.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/helper/free-port.js'
import { prepareServices, programOf, type Service, ServicesMissing, thisMachine } from '../services.js'
import { BASE_IMAGES, prepareBaseImages } from './base-images.js'
import { Buildah } from './buildah.js'
import { Checks, contentsOf } from './checks.js'
import { Container } from './container.js'
import { IMAGES, type ImageTest } from './images.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Kept from run to run, because the stand-ins for base images take a minute. */
const STORAGE = '/var/tmp/gatehouse-containers'

const debootstrap: Service = { name: 'debootstrap', programs: ['debootstrap'], aptPackage: 'debootstrap' }
const TOOLS: readonly Service[] = [{ name: 'buildah', programs: ['buildah'], aptPackage: 'buildah' }, debootstrap]

const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

const npmSetting = (name: string): string => execFileSync('npm', ['config', 'get', name], { encoding: 'utf8' }).trim()

const build = (buildah: Buildah, name: string, dockerfile: string, folder: string): string => {
  // Packages come from where this machine gets them, and from its cache first.
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

const tryImage = async (
  buildah: Buildah,
  tag: string,
  { scene: setUp, strangers, mostMb }: ImageTest,
  checks: Checks
) => {
  const image = buildah.inspect(tag)
  const { config } = image.Docker
  checks.that(
    'has labels',
    ['title', 'licenses'].every((name) => `org.opencontainers.image.${name}` in config.Labels)
  )
  checks.that('is not for root', /^[1-9]\d*:[1-9]\d*$/.test(config.User), config.User)

  await buildah.with(tag, async (root) => {
    const files = contentsOf(root)
    const size = sizeOf(files)
    checks.that(
      mostMb === undefined ? 'has a size' : `takes less than ${mostMb} MB`,
      size.whole < (mostMb ?? Infinity),
      size
    )
    const strange = [...files.keys()].filter((file) => strangers.some((stranger) => stranger.test(file)))
    checks.that('holds only what it runs, and no source or tests', strange.length === 0, strange.slice(0, 5).join(', '))

    const secrets = mkdtempSync(join(tmpdir(), 'gatehouse-secrets-'))
    const port = await freePort()
    const scene = await setUp(port)
    for (const [name, text] of Object.entries(scene.secrets)) writeFileSync(join(secrets, name), text, { mode: 0o444 })
    execFileSync('chmod', ['755', secrets])
    const container = new Container(image, root, { env: scene.env, secrets })
    try {
      await container.listening()
      runsAsItShould(container, config.User, checks)
      checks.that('its health check is content', container.healthCheck() === 0)
      await scene.try(checks, `http://127.0.0.1:${port}`)
      checks.that('its health check notices when nobody listens', container.healthCheck(NOWHERE) === 1)
      const code = await container.stop('SIGTERM')
      checks.that('leaves with 0 on SIGTERM', code === 0, code)
    } catch (error) {
      checks.that('runs', false, `${error instanceof Error ? error.stack : error}\n${container.printed}`)
    } finally {
      await container.end()
      await scene.close()
      rmSync(secrets, { recursive: true })
    }
  })
}

/** In millions of bytes, as container engines count. */
const sizeOf = (files: ReadonlyMap<string, number>) => {
  const sum = (isMeant: (file: string) => boolean): number =>
    Math.round([...files].reduce((bytes, [file, size]) => bytes + (isMeant(file) ? size : 0), 0) / 1e5) / 10
  const isNode = (file: string): boolean => file === '/usr/local/bin/node'
  const isOurs = (file: string): boolean => file.startsWith('/app/')
  return {
    whole: sum(() => true),
    base: sum((file) => !isNode(file) && !isOurs(file)),
    node: sum(isNode),
    ours: sum(isOurs)
  }
}

const NOWHERE = { GATEWAY_PORT: '1', RELAY_PORT: '1', DEMO_BACKEND_PORT: '1' }

const runsAsItShould = (container: Container, user: string, checks: Checks): void => {
  const ids = [container.status('Uid'), container.status('Gid')].map((text) => text.split('\t')[0]).join(':')
  checks.that('runs as its user', ids === user, ids)
  const [, inside] = container.status('NSpid').split('\t')
  checks.that('is process 1', inside === '1' && container.status('Name') === 'node', container.status('Name'))
  checks.that('runs on a read-only root', container.rootOptions.includes('ro'), container.rootOptions.join())
  checks.that('has no capability', /^0+$/.test(container.status('CapEff')) && container.status('NoNewPrivs') === '1')
}

const main = async (wanted: readonly string[]): Promise<number> => {
  if (process.getuid?.() !== 0) {
    say('Roots and mounts are made here, which needs root: sudo npm run test:containers')
    return 1
  }
  const machine = thisMachine(process.env)
  prepareServices(TOOLS, machine, say)
  const tools = { debootstrap: programOf(debootstrap, machine) ?? '', npm: machine.find('npm') ?? '' }
  const buildah = new Buildah(STORAGE)
  await prepareBaseImages(buildah, tools, say)

  const checks = new Checks(say)
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-build-'))
  try {
    for (const [name, image] of Object.entries(IMAGES)) {
      if (wanted.length > 0 && !wanted.includes(name)) continue
      say(`== ${name}: building ${image.dockerfile} …`)
      const tag = build(buildah, name, image.dockerfile, folder)
      await tryImage(buildah, tag, image, checks)
      buildah.remove(tag)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  say(checks.failed === 0 ? 'all is well' : `${checks.failed} failed`)
  return checks.failed === 0 ? 0 : 1
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof ServicesMissing)) throw error
  say(error.message)
  process.exitCode = 1
}
