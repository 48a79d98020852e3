import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { installNode } from '../../../scripts/lib/node-version.js'
import type { Buildah } from './buildah.js'

/**
 * Substitutes for the base images of the Dockerfiles, for machines without access to an image registry: Debian by
 * debootstrap without the files that the slim image omits, and the same with Node.js of the npm package `node` and this
 * machine's npm. They are kept for the next run.
 */
export const BASE_IMAGES = {
  RUNTIME_IMAGE: 'localhost/gatehouse-base-debian:13-slim',
  NODE_IMAGE: 'localhost/gatehouse-base-node:24-trixie-slim'
} as const

const SUITE = 'trixie'
const NODE_MAJOR = '24'

/** Folders of debootstrap's result that are empty in the official slim image. */
const NOT_SLIM = ['doc', 'groff', 'info', 'linda', 'lintian', 'locale', 'man'].map((name) => `usr/share/${name}`)
const BUILD_LEFTOVERS = ['var/cache/apt', 'var/lib/apt/lists', 'var/log']

const CERTIFICATES = 'etc/ssl/certs/ca-certificates.crt'

export const prepareBaseImages = async (
  buildah: Buildah,
  tools: { readonly debootstrap: string; readonly npm: string },
  print: (line: string) => void
): Promise<void> => {
  const { RUNTIME_IMAGE, NODE_IMAGE } = BASE_IMAGES
  if (!buildah.has(RUNTIME_IMAGE)) {
    print('creating the base image for Debian slim …')
    await buildah.with('scratch', async (root, container) => {
      execFileSync(tools.debootstrap, ['--variant=minbase', SUITE, root], { stdio: ['ignore', 'pipe', 'pipe'] })
      for (const folder of [...NOT_SLIM, ...BUILD_LEFTOVERS]) empty(join(root, folder))
      buildah.commit(container, RUNTIME_IMAGE)
    })
  }
  if (!buildah.has(NODE_IMAGE)) {
    print('creating the base image for Node.js …')
    const node = join(installNode(NODE_MAJOR, process.env, print), 'node')
    await buildah.with(RUNTIME_IMAGE, async (root, container) => {
      const [bin, library] = [join(root, 'usr/local/bin'), join(root, 'usr/local/lib/node_modules')]
      copyFileSync(node, join(bin, 'node'))
      // Resolves the links to …/npm/bin/npm-cli.js.
      cpSync(dirname(dirname(realpathSync(tools.npm))), join(library, 'npm'), { recursive: true, dereference: true })
      for (const name of ['npm', 'npx']) symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(bin, name))
      // A registry proxy with its own certificate authority is trusted by this machine only.
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
