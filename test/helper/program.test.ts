import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { t } from 'tap'
import { portOf } from './address.js'
import { startProgram } from './program.js'

t.test('startProgram', async (t) => {
  const script = (t: { testdir(content: Record<string, string>): string }, text: string): string =>
    `${t.testdir({ 'main.mjs': text })}/main.mjs`

  t.test('startProgram passes only the given variables, PATH and NODE_ENV=test', async (t) => {
    const program = await startProgram(
      t,
      script(t, 'console.log(Object.keys(process.env).sort().join(), process.env.NODE_ENV)'),
      { A: '1' }
    )

    t.same(await program.exited, { code: 0, signal: null })
    t.equal(program.stdout, 'A,NODE_ENV,PATH test\n')
  })

  t.test('waitForLine finds a line of either stream, also an earlier one', async (t) => {
    const program = await startProgram(t, script(t, 'console.error("one\\ntwo 2"); console.log("three")'), {})

    await program.exited

    t.equal(await program.waitForLine(/^two \d$/), 'two 2')
    t.equal(await program.waitForLine('hre'), 'three')
  })

  t.test('waitForLine rejects with the output if the program ends before the line', async (t) => {
    const program = await startProgram(t, script(t, 'console.error("PORT is missing"); process.exit(3)'), {})

    await t.rejects(program.waitForLine('listening'), {
      message: /ended with 3 before .*listening[\s\S]*PORT is missing/
    })
  })

  t.test('waitForLine rejects after its timeout', async (t) => {
    const program = await startProgram(t, script(t, 'setInterval(() => {}, 1000)'), {})

    await t.rejects(program.waitForLine('listening', 50), { message: /silent for 50 ms/ })
  })

  t.test('signal sends a signal to the program', async (t) => {
    const program = await startProgram(
      t,
      script(t, 'process.on("SIGTERM", () => process.exit(7)); setInterval(() => {}, 1000); console.log("up")'),
      {}
    )
    await program.waitForLine('up')

    program.signal('SIGTERM')

    t.same(await program.exited, { code: 7, signal: null })
  })

  t.test('startProgram kills the program when the test process is killed', async (t) => {
    const server = createServer()
    t.teardown(() => server.close())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const port = portOf(server)
    const folder = t.testdir({
      'child.mjs': `import { connect } from 'node:net'; connect(${port}, '127.0.0.1')`,
      'parent.mjs': `
        import { register } from 'tsx/esm/api'
        register()
        const { startProgram } = await import('${import.meta.url.replace('.test.', '.')}')
        await startProgram({ teardown() {} }, '${t.testdirName}/child.mjs', {})`
    })
    const parent = await startProgram(t, `${folder}/parent.mjs`, {})
    const client: Socket = (await once(server, 'connection'))[0]

    parent.signal('SIGKILL')

    // The child keeps this connection open until it ends.
    await once(
      client.resume().on('error', () => {}),
      'close'
    )
    t.same(await parent.exited, { code: null, signal: 'SIGKILL' })
  })
})
