import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

/** What Debian's buildah wrote about an image, as far as it is looked at here. */
export interface Image {
  readonly Docker: {
    readonly config: {
      readonly User: string
      readonly Env: readonly string[]
      readonly Entrypoint: readonly string[]
      readonly WorkingDir: string
      readonly Labels: Readonly<Record<string, string>>
      readonly Healthcheck?: { readonly Test: readonly string[] }
    }
  }
}

export interface Build {
  readonly context: string
  readonly dockerfile: string
  readonly tag: string
  readonly args: Readonly<Record<string, string>>
  /** Files that a step may see and that stay out of the image, by id. */
  readonly secrets: Readonly<Record<string, string>>
  /** `host:container`, for as long as the build lasts. */
  readonly volumes: readonly string[]
}

/** Builds without a daemon and without namespaces of its own; its images are in a folder, and go with it. */
export class Buildah {
  readonly #global: readonly string[]

  constructor(storage: string) {
    mkdirSync(storage, { recursive: true })
    this.#global = ['--root', join(storage, 'root'), '--runroot', join(storage, 'run'), '--storage-driver', 'vfs']
  }

  has(image: string): boolean {
    return this.#spawn(['inspect', '--type', 'image', image]).status === 0
  }

  inspect(image: string): Image {
    return JSON.parse(this.#run(['inspect', '--type', 'image', image])) as Image
  }

  build({ context, dockerfile, tag, args, secrets, volumes }: Build): void {
    this.#run([
      // No layer for every step: with this storage driver each would be a copy of everything so far.
      ...['bud', '--layers=false', '--pull-never'],
      // The other format has no health checks.
      ...['--isolation', 'chroot', '--format', 'docker', '--tag', tag, '--file', dockerfile],
      ...Object.entries(args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]),
      ...Object.entries(secrets).flatMap(([id, file]) => ['--secret', `id=${id},src=${file}`]),
      ...volumes.flatMap((volume) => ['--volume', volume]),
      context
    ])
  }

  /** A container of an image, or of nothing (`scratch`): `work` gets the folder that is its root, and its name. */
  async with(image: string, work: (root: string, container: string) => Promise<void>): Promise<void> {
    const container = this.#run(['from', '--pull-never', image]).trim()
    try {
      await work(this.#run(['mount', container]).trim(), container)
    } finally {
      this.#run(['rm', container])
    }
  }

  commit(container: string, image: string): void {
    this.#run(['commit', '--quiet', container, image])
  }

  remove(image: string): void {
    this.#run(['rmi', image])
  }

  #run(args: readonly string[]): string {
    const { status, stdout, stderr } = this.#spawn(args)
    if (status !== 0) throw new Error(`buildah ${args.join(' ')} failed:\n${stdout}${stderr}`)
    return stdout
  }

  #spawn(args: readonly string[]) {
    return spawnSync('buildah', [...this.#global, ...args], { encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 })
  }
}
