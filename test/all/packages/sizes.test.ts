import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { build } from 'vite'
import { installedPackages } from './tarballs.js'

const KILOBYTE = 1024

/** Scripts of web applications, and how many kilobytes they may have, minified and gzipped. */
const SCRIPTS = [
  ['the API client', 8, "import { createApiClient } from 'gatehouse-client'\ncreateApiClient()"],
  ['the client with realtime', 40, "import { createClient } from 'gatehouse-client'\ncreateClient().realtime.start()"],
  [
    'the client with realtime and live positions',
    40,
    "import { createClient } from 'gatehouse-client'\nimport { Positions } from 'gatehouse-client/buildings'\nglobalThis.positions = new Positions(createClient().realtime)"
  ],
  [
    'the client for buildings with all routes',
    65,
    "import { createBuildingClient } from 'gatehouse-client/buildings'\nglobalThis.client = createBuildingClient()"
  ]
] as const

const bundleOf = async (name: string, script: string): Promise<string> => {
  const folder = installedPackages()
  const input = join(folder, `${name}.js`)
  writeFileSync(input, script)
  const results = await build({
    root: folder,
    configFile: false,
    // Without the `.env` of the gateway.
    envDir: false,
    logLevel: 'warn',
    build: { write: false, target: 'es2022', rollupOptions: { input } }
  })
  if ('on' in results) throw new Error('the build watches its files')
  const code = [results].flat().flatMap(({ output }) => output.map((file) => (file.type === 'chunk' ? file.code : '')))
  return code.join('')
}

for (const [index, [title, kilobytes, script]] of SCRIPTS.entries()) {
  t.test(`${title} has at most ${kilobytes} KB, minified and gzipped`, async (t) => {
    const code = await bundleOf(`size-${index}`, script)
    const bytes = gzipSync(code).length
    t.comment(`${title}: ${(bytes / KILOBYTE).toFixed(1)} KB`)
    t.ok(bytes <= kilobytes * KILOBYTE, `${bytes} bytes`)
    t.match(code, 'x-csrf-token')
    t.equal(/centrifuge/i.test(code), !script.includes('createApiClient'), 'the realtime client is part of the script')
  })
}
