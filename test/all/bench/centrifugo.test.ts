import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { centrifugoProgram } from '../../../bench/harness/programs.js'
import { centrifugoConfig, startCentrifugo } from '../../../bench/relay/centrifugo.js'
import { KEY } from '../../../bench/relay/running-server.js'
import type { Teardown } from '../../helper/child.js'
import { scriptArguments } from '../../helper/script.js'
import DEFAULT_CONFIG from '../../relay/centrifugo-defaultconfig.json' with { type: 'json' }
import { configWith } from '../../relay/config-fixture.js'

const setProgram = (t: Teardown, file: string | undefined): void => {
  const before = process.env.CENTRIFUGO_BIN
  const set = (value: string | undefined): void => {
    if (value === undefined) delete process.env.CENTRIFUGO_BIN
    else process.env.CENTRIFUGO_BIN = value
  }
  t.teardown(() => set(before))
  set(file)
}

t.test('the configuration for Centrifugo has only options of Centrifugo', async (t) => {
  const isKnown = (value: object, known: object, path: string): void => {
    for (const [name, option] of Object.entries(value)) {
      t.hasOwnProp(known, name, `${path}${name}`)
      if (typeof option === 'object' && !Array.isArray(option)) {
        isKnown(option, Object(known)[name], `${path}${name}.`)
      }
    }
  }
  isKnown(centrifugoConfig(8000), DEFAULT_CONFIG, '')
})

t.test('the relay accepts the configuration for Centrifugo', async (t) => {
  t.doesNotThrow(() => configWith(centrifugoConfig(8000)))
})

t.test('Centrifugo is missing if CENTRIFUGO_BIN is not set', async (t) => {
  setProgram(t, undefined)
  t.equal(centrifugoProgram(), undefined)
})

t.test('a CENTRIFUGO_BIN that is not Centrifugo is an error', async (t) => {
  setProgram(t, process.execPath)
  t.throws(() => centrifugoProgram(), { message: /^CENTRIFUGO_BIN=.* is not a Centrifugo binary$/ })
  setProgram(t, '/no/such/program')
  t.throws(() => centrifugoProgram(), { message: 'CENTRIFUGO_BIN=/no/such/program is not a Centrifugo binary' })
})

t.test('the adapter starts the program with its configuration and stops it', async (t) => {
  // The relay reads the same file, so it can take the place of Centrifugo.
  const program = join(t.testdir(), 'centrifugo')
  const relay = [process.execPath, ...scriptArguments('src/relay/main.ts')].join(' ')
  writeFileSync(
    program,
    `#!/bin/sh\n[ "$1" = version ] && { echo "Centrifugo v6.9.1 (Go version: go1.26)"; exit; }\nRELAY_CONFIG="$2" exec ${relay}\n`
  )
  chmodSync(program, 0o755)
  setProgram(t, program)

  const server = await startCentrifugo('0')
  t.teardown(() => server.stop())
  const [port] = server.ports
  const response = await fetch(`http://127.0.0.1:${port}/api/publish`, {
    method: 'POST',
    headers: { 'x-api-key': KEY },
    body: '{"channel":"floor:0","data":{}}'
  })
  t.match(await response.text(), /"offset":1/)
})
