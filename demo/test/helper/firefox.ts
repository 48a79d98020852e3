import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { firefox, programOf, thisMachine } from '../../../scripts/lib/services.js'
import { startChild, type Teardown } from '../../../test/helper/child.js'
import { environment } from '../../../test/helper/environment.js'

interface Firefox {
  goTo(url: string): Promise<unknown>
  /** The value of an expression in the page: a text, a number or a boolean. */
  evaluate(expression: string): Promise<unknown>
  /** Errors and warnings of the console, and uncaught errors. */
  readonly errors: readonly string[]
}

interface Message {
  readonly id?: number
  readonly type: 'success' | 'error' | 'event'
  readonly message?: string
  readonly result?: Readonly<Record<string, unknown>>
  readonly params?: { readonly level?: string; readonly text?: string }
}

/** Opens a page in Firefox and drives it by WebDriver BiDi, which Firefox speaks by itself: Playwright needs a Firefox of its own. */
export const openFirefox = async (t: Teardown): Promise<Firefox> => {
  const program = environment.firefoxPath ?? programOf(firefox, thisMachine(environment.all))
  if (program === undefined) throw new Error(`no Firefox: set ${firefox.variable}`)
  const profile = await mkdtemp(join(tmpdir(), 'gatehouse-firefox-'))
  t.teardown(() => rm(profile, { recursive: true, force: true, maxRetries: 5 }))
  const args = ['--headless', '--no-remote', '--remote-debugging-port=0', '--profile', profile]
  const child = await startChild(t, program, args, { HOME: profile, MOZ_DISABLE_CONTENT_SANDBOX: '1' })
  const line = await child.waitForLine(/WebDriver BiDi listening on ws:/)
  const socket = new WebSocket(`${line.match(/ws:\S+/)?.[0]}/session`)
  t.teardown(() => socket.close())
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))

  const waiting = new Map<number, (message: Message) => void>()
  const errors: string[] = []
  socket.on('message', (data) => {
    const message: Message = JSON.parse(String(data))
    const { level, text } = message.params ?? {}
    if (message.id !== undefined) waiting.get(message.id)?.(message)
    else if (level === 'error' || level === 'warn') errors.push(text ?? '')
  })
  let id = 0
  const send = (method: string, params: object): Promise<Readonly<Record<string, unknown>>> =>
    new Promise((resolve, reject) => {
      id += 1
      waiting.set(id, ({ type, result = {}, message }) => {
        if (type === 'success') resolve(result)
        else reject(new Error(`${method}: ${message}`))
      })
      socket.send(JSON.stringify({ id, method, params }))
    })
  await send('session.new', { capabilities: {} })
  await send('session.subscribe', { events: ['log.entryAdded'] })
  const { context } = await send('browsingContext.create', { type: 'tab' })
  return {
    errors,
    goTo: (url) => send('browsingContext.navigate', { context, url, wait: 'complete' }),
    evaluate: async (expression) => {
      const { result } = await send('script.evaluate', { expression, target: { context }, awaitPromise: true })
      return (result as { readonly value?: unknown } | undefined)?.value
    }
  }
}
