import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Image } from './buildah.js'

/** Prepares the mounts in new namespaces, then runs the program on a read-only root. */
const ENTER = `
set -eu
root=$1 secrets=$2 user=$3 group=$4; shift 4
mount --make-rprivate /
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
mkdir "$root/run/secrets"
mount --bind "$secrets" "$root/run/secrets"
mount -o remount,bind,ro "$root"
exec chroot "$root" setpriv --reuid "$user" --regid "$group" --clear-groups --inh-caps=-all --bounding-set=-all \\
  --no-new-privs -- "$@"`

/** Far longer than a start takes on a busy machine. */
const START_DEADLINE_MS = 180_000
const POLL_MS = 50

/** Runs an image's program as a container engine would: as its user, without capabilities, on a read-only root. */
export class Container {
  readonly #image: Image['Docker']['config']
  readonly #env: Readonly<Record<string, string>>
  readonly #child: ChildProcess
  readonly #exited: Promise<number | null>
  #printed = ''

  constructor(
    image: Image,
    root: string,
    { env, secrets }: { readonly env: Readonly<Record<string, string>>; readonly secrets: string }
  ) {
    this.#image = image.Docker.config
    this.#env = env
    const [user = '', group = ''] = this.#image.User.split(':')
    this.#child = spawn(
      'unshare',
      [
        ...['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', ENTER, 'sh', root, secrets, user, group],
        ...this.#inside(['sh', '-c', 'cd "$0" && exec "$@"', this.#image.WorkingDir, ...this.#image.Entrypoint])
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] }
    )
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#printed += text
      })
    }
    this.#exited = once(this.#child, 'close').then(([code]) => code)
  }

  get printed(): string {
    return this.#printed
  }

  /** The program's process id outside of the container. */
  get pid(): number {
    const { pid } = this.#child
    const [child = ''] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
    return Number(child)
  }

  /** A field of /proc/<pid>/status, such as `Uid`. */
  status(field: string): string {
    const [, value = ''] =
      new RegExp(`^${field}:\\s*(.*)$`, 'm').exec(readFileSync(`/proc/${this.pid}/status`, 'utf8')) ?? []
    return value
  }

  /** The first word of the command line. */
  get command(): string {
    return readFileSync(`/proc/${this.pid}/cmdline`, 'utf8').split('\0')[0] ?? ''
  }

  /** The mount options of the program's root. */
  get rootOptions(): readonly string[] {
    const root = readFileSync(`/proc/${this.pid}/mountinfo`, 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .find(([, , , , mountPoint]) => mountPoint === '/')
    return root?.[5]?.split(',') ?? []
  }

  /** Runs the image's health check in the container and returns its exit code. */
  healthCheck(env: Readonly<Record<string, string>> = {}): number | null {
    const [kind, command = ''] = this.#image.Healthcheck?.Test ?? []
    if (kind !== 'CMD-SHELL') throw new Error('the image has no health check')
    const [user, group] = this.#image.User.split(':')
    const target = [`--target=${this.pid}`, '--mount', '--pid', '--root', `--wd=/proc/${this.pid}/cwd`]
    target.push(`--setuid=${user}`, `--setgid=${group}`)
    return spawnSync('nsenter', [...target, ...this.#inside(['sh', '-c', command], env)]).status
  }

  async listening(): Promise<void> {
    const until = Date.now() + START_DEADLINE_MS
    while (!this.#printed.includes('listening at')) {
      if (this.#child.exitCode !== null || Date.now() > until) throw new Error(`did not start:\n${this.#printed}`)
      await delay(POLL_MS)
    }
  }

  /** Resolves with the exit code. */
  async stop(signal: NodeJS.Signals): Promise<number | null> {
    process.kill(this.pid, signal)
    return this.#exited
  }

  /** Kills the program. */
  async end(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  #inside(command: readonly string[], more: Readonly<Record<string, string>> = {}): string[] {
    const own = Object.entries({ ...this.#env, ...more }).map(([name, value]) => `${name}=${value}`)
    return ['env', '-i', ...this.#image.Env, ...own, ...command]
  }
}
