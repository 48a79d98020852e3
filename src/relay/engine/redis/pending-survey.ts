/** Long enough for a busy node. A dead node costs this much until its lease has ended. */
const REPLY_TIMEOUT_MS = 2_000

/** A survey without all its replies. */
export class PendingSurvey {
  /** The nodes whose replies are missing. */
  readonly missing: Set<string>
  readonly results = new Map<string, unknown>()
  #resolve = (): void => undefined

  constructor(nodes: Iterable<string>) {
    this.missing = new Set(nodes)
  }

  addResult(node: string, result: unknown): void {
    this.results.set(node, result)
    this.stopWaitingFor(node)
  }

  stopWaitingFor(node: string): void {
    this.missing.delete(node)
    if (this.missing.size === 0) this.#resolve()
  }

  /** Resolves when no reply is missing, after the timeout, or when `sent` fails. */
  async complete(sent: Promise<void>): Promise<void> {
    if (this.missing.size === 0) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#resolve = resolve
      timer = setTimeout(resolve, REPLY_TIMEOUT_MS)
      sent.catch(resolve)
    })
    clearTimeout(timer)
  }
}
