import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stackOf } from '../../../demo/run/stack.js'
import packageFile from '../../../package.json' with { type: 'json' }
import { isSetting, missingSettings, PROGRAMS } from './program-settings.js'
import { type Change, changed, shipped, shippedEnvironment } from './shipped.js'
import { runTool } from './tool.js'

t.test('systemd units', async (t) => {
  /** The values of a key, in order. */
  const values = (unit: string, key: string): string[] =>
    [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value)

  for (const program of PROGRAMS) {
    t.test(`gatehouse-${program}@.service`, async (t) => {
      const name = `gatehouse-${program}@.service`
      const unit = shipped(`deploy/systemd/${name}`)

      t.test(`systemd accepts ${name}`, async (t) => {
        // Node.js may be installed elsewhere on this machine.
        const file = join(t.testdir(), name)
        const here: Change = ['ExecStart=/usr/bin/node ', `ExecStart=${process.execPath} `]
        writeFileSync(file, changed(unit, [here]))

        // The exit code is 0 even for unknown keys, which are only printed.
        t.equal(await runTool(t, 'systemd-analyze', ['verify', '--man=no', file]), '')
      })

      t.test(`${name} has the same command line as the image and both start scripts`, async (t) => {
        const script = packageFile.scripts[`start:${program}`]
        const [, image = ''] = /^ENTRYPOINT (.*)$/m.exec(shipped(`Dockerfile.${program}`)) ?? []

        t.same(values(unit, 'ExecStart'), [script.replace('exec node', '/usr/bin/node')])
        t.equal(JSON.parse(image).join(' '), script.replace('exec ', ''))
        const { nodeFlags = [], entry = '' } =
          stackOf({}, { root: '', folder: '' }).programs.find(({ name }) => name === program) ?? {}
        t.equal(['node', ...nodeFlags, entry].join(' '), script.replace('exec ', ''), 'npm start')
      })

      t.test(`${name} has an exposure level below 1.5`, async (t) => {
        const file = join(t.testdir(), name)
        writeFileSync(file, unit)
        const args = ['security', '--offline=true', '--threshold=15', '--no-pager', file]

        t.match(await runTool(t, 'systemd-analyze', args), 'Overall exposure level')
      })

      t.test(`${name} sets all required settings and no unknown ones`, async (t) => {
        const inline = values(unit, 'Environment').map((text) => text.slice(0, text.indexOf('=')))
        const names = [...inline, ...Object.keys(shippedEnvironment(`deploy/systemd/${program}.env`))]

        const proposed = [...shipped(`deploy/systemd/${program}.env`).matchAll(/^# ([A-Z_]+)=/gm)].map(
          ([, setting = '']) => setting
        )

        t.same(
          [...names, ...proposed].filter((setting) => !isSetting(program, setting)),
          []
        )
        t.same(missingSettings(program, names), [])
        t.same(values(unit, 'EnvironmentFile'), [`/etc/gatehouse/${program}.env`])
      })

      t.test(`${name} passes every loaded credential to the program`, async (t) => {
        const loaded = values(unit, 'LoadCredential').map((text) => `%d/${text.slice(0, text.indexOf(':'))}`)
        const used = values(unit, 'Environment').flatMap((text) => /=(%d.*)$/.exec(text)?.[1] ?? [])

        t.same(used, loaded)
      })
    })
  }
})
