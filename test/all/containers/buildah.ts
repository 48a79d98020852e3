import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

/** The parts of `buildah inspect` that are used here. */
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
  /** Files that build steps can read and that are not part of the image, by id. */
  readonly secrets: Readonly<Record<string, string>>
  /** `host:container`, mounted during the build. */
  readonly volumes: readonly string[]
}

/** Builds without a daemon and without namespaces; its images are stored in one folder. */
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
    return JSON.parse(this.#run(['inspect', '--type', 'image', image]))
  }

  build({ context, dockerfile, tag, args, secrets, volumes }: Build): void {
    this.#run([
      // With this storage driver every layer is a complete copy.
      ...['bud', '--layers=false', '--pull-never'],
      // The OCI format has no health checks.
      ...['--isolation', 'chroot', '--format', 'docker', '--tag', tag, '--file', dockerfile],
      ...Object.entries(args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]),
      ...Object.entries(secrets).flatMap(([id, file]) => ['--secret', `id=${id},src=${file}`]),
      ...volumes.flatMap((volume) => ['--volume', volume]),
      context
    ])
  }

  /** Creates a container of an image (or `scratch`) and passes its root folder and its name to `work`. */
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
