import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Buildah } from './buildah.js'

/**
 * Stand-ins for the images that the Dockerfiles begin with, for machines that can fetch none: Debian by debootstrap,
 * without what the slim image leaves out; and the same with this machine's Node.js and npm where the official image has
 * them. They are kept for the next run.
 */
export const BASE_IMAGES = {
  RUNTIME_IMAGE: 'localhost/gatehouse-stand-in-debian:12-slim',
  NODE_IMAGE: 'localhost/gatehouse-stand-in-node:20-bookworm-slim'
} as const

const SUITE = 'bookworm'

/** What the official slim image leaves out, of what debootstrap brings. */
const NOT_SLIM = ['doc', 'groff', 'info', 'linda', 'lintian', 'locale', 'man'].map((name) => `usr/share/${name}`)
const LEFT_BEHIND = ['var/cache/apt', 'var/lib/apt/lists', 'var/log']

const CERTIFICATES = 'etc/ssl/certs/ca-certificates.crt'

export const prepareBaseImages = async (
  buildah: Buildah,
  tools: { readonly debootstrap: string; readonly npm: string },
  say: (line: string) => void
): Promise<void> => {
  const { RUNTIME_IMAGE, NODE_IMAGE } = BASE_IMAGES
  if (!buildah.has(RUNTIME_IMAGE)) {
    say('making the stand-in for Debian slim …')
    await buildah.with('scratch', async (root, container) => {
      execFileSync(tools.debootstrap, ['--variant=minbase', SUITE, root], { stdio: ['ignore', 'pipe', 'pipe'] })
      for (const folder of [...NOT_SLIM, ...LEFT_BEHIND]) empty(join(root, folder))
      buildah.commit(container, RUNTIME_IMAGE)
    })
  }
  if (!buildah.has(NODE_IMAGE)) {
    say(`making the stand-in for the Node.js image, with ${process.version} …`)
    await buildah.with(RUNTIME_IMAGE, async (root, container) => {
      const [bin, library] = [join(root, 'usr/local/bin'), join(root, 'usr/local/lib/node_modules')]
      copyFileSync(process.execPath, join(bin, 'node'))
      // …/npm/bin/npm-cli.js, however many links lead there
      cpSync(dirname(dirname(realpathSync(tools.npm))), join(library, 'npm'), { recursive: true, dereference: true })
      for (const name of ['npm', 'npx']) symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(bin, name))
      // Where packages come through a proxy with a certificate of its own, only the machine knows it.
      mkdirSync(dirname(join(root, CERTIFICATES)), { recursive: true })
      if (existsSync(`/${CERTIFICATES}`)) copyFileSync(`/${CERTIFICATES}`, join(root, CERTIFICATES))
      buildah.commit(container, NODE_IMAGE)
    })
  }
}

const empty = (folder: string): void => {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
}
