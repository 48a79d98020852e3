import t, { type Test } from 'tap'
import { type Child, startChild } from '../helper/child.js'
import { environment } from '../helper/environment.js'
import { scriptArguments } from '../helper/script.js'

const start = async (t: Test, delayMs = 0): Promise<Child> => {
  const args = [...scriptArguments('test/shared/shutdown-program.ts'), String(delayMs)]
  const program = await startChild(t, process.execPath, args, { PATH: environment.path })
  await program.waitForLine('started')
  return program
}

t.test('a program that receives SIGTERM exits with 0 after its work is complete', async (t) => {
  const program = await start(t)
  program.signal('SIGTERM')
  await program.waitForLine('closing')
  program.signal('SIGHUP')
  t.same(await program.exited, { code: 0, signal: null })
  t.match(program.stdout, 'stopped')
})

t.test('an unhandled rejection closes the program, which exits with 1', async (t) => {
  const program = await start(t)
  program.signal('SIGUSR2')
  await program.waitForLine('closing')
  program.signal('SIGHUP')
  t.same(await program.exited, { code: 1, signal: null })
  t.match(program.stdout, 'stopped')
})

t.test('a program that is closing completes its work after an unhandled rejection, and exits with 1', async (t) => {
  const program = await start(t)
  program.signal('SIGTERM')
  await program.waitForLine('closing')
  program.signal('SIGUSR2')
  await program.waitForLine('unhandledRejection')
  program.signal('SIGHUP')
  t.same(await program.exited, { code: 1, signal: null })
  t.match(program.stdout, 'stopped')
})

for (const first of ['SIGTERM', 'SIGINT'] as const) {
  t.test(
    `a SIGINT within two seconds of ${first} is ignored, a later one ends the program at once with 1`,
    async (t) => {
      const program = await start(t)
      program.signal(first)
      await program.waitForLine('closing')
      // SIGINT is repeated until the two seconds are over.
      const repeat = setInterval(() => program.signal('SIGINT'), 200)
      t.teardown(() => clearInterval(repeat))

      t.same(await program.exited, { code: 1, signal: null })
      const [stopping = '', atOnce = ''] = program.stdout.split('\n').filter((line) => line.includes('"stopping'))
      t.match(JSON.parse(stopping), { msg: 'stopping', signal: first })
      t.match(JSON.parse(atOnce), { msg: 'stopping at once', signal: 'SIGINT' })
      t.ok(JSON.parse(atOnce).time - JSON.parse(stopping).time >= 1_900, 'the time between them')
    }
  )
}

t.test('a program without a delay announces nothing', async (t) => {
  const program = await start(t)
  program.signal('SIGTERM')
  await program.waitForLine('closing')
  t.notMatch(program.stdout, 'announced')
})

t.test('a program with a delay announces its shutdown and closes after the delay', async (t) => {
  const program = await start(t, 100)
  program.signal('SIGTERM')
  await program.waitForLine('closing')
  t.match(program.stdout, /announced.*closing/s)
})

t.test('an unhandled rejection ends the delay, and the program exits with 1', async (t) => {
  const program = await start(t, 300_000)
  program.signal('SIGTERM')
  await program.waitForLine('announced')
  t.notMatch(program.stdout, 'closing')
  program.signal('SIGUSR2')
  await program.waitForLine('closing')
  program.signal('SIGHUP')
  t.same(await program.exited, { code: 1, signal: null })
})
