import t from 'tap'
import packageFile from '../../package.json' with { type: 'json' }
import { PACKAGES } from '../../scripts/lib/package-contents.js'
import { startChild } from '../helper/child.js'
import { environment } from '../helper/environment.js'

/** The compiled entries of the package, such as `src/client/index.js`. */
const entries = (): string[] => {
  const [client] = PACKAGES.filter(({ name }) => name === 'gatehouse-client')
  if (client === undefined) throw new Error('there is no package gatehouse-client')
  // The manifest of this package has such entries.
  const { exports } = client.manifest(packageFile) as { exports: Record<string, { default: string }> }
  return (
    Object.values(exports)
      .map((entry) => entry.default)
      // Not `browser.js`, which exists in the package only and is for browsers: the test of the quickstart loads it.
      .filter((path) => path.startsWith('./src/') && !path.includes('*'))
  )
}

const program = (paths: readonly string[]): string => `
for (const name of ['window', 'document', 'location', 'navigator', 'WebSocket', 'XMLHttpRequest', 'localStorage'])
  delete globalThis[name]
for (const path of ${JSON.stringify(paths)}) await import('./dist/' + path)
const { createApiClient, createClient } = await import('./dist/src/client/index.js')
const { createBuildingClient } = await import('./dist/src/client/buildings/index.js')
const clients = [createApiClient(), createClient(), createBuildingClient()]
const states = clients.map(({ session, realtime }) => [session.state.isSignedIn, realtime?.state])
// Without open timers and connections the process ends by itself.
process.on('exit', () => console.log('result', JSON.stringify(states)))
`

t.test('every entry can be imported, and every client created, on a server that renders pages', async (t) => {
  const paths = entries()
  t.ok(paths.length >= 3)
  const child = await startChild(t, process.execPath, ['--input-type=module', '--eval', program(paths)], {
    PATH: environment.path
  })
  const line = await child.waitForLine(/^result /)
  t.equal(line, 'result [[false,null],[false,"offline"],[false,"offline"]]')
  t.match(await child.exited, { code: 0 })
})
