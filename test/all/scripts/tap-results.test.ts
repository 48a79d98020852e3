import { t } from 'tap'
import { readTap, type TestListener } from '../../../scripts/lib/tap-results.js'

const none: TestListener = { failure() {}, skip() {}, fileEnd() {}, runner() {} }

const read = (text: string, listener: Partial<TestListener> = {}) =>
  readTap(
    // In small chunks, as from a pipe.
    (async function* () {
      for (let i = 0; i < text.length; i += 7) yield text.slice(i, i + 7)
    })(),
    { ...none, ...listener }
  )

const PASSING_FILE = `TAP version 14
1..1
# Subtest: test/a.test.ts
    ok 1 - one
    # Subtest: inner
        ok 1 - two
        ok 2 - three
        1..2
    ok 2 - inner # time=2ms
    1..2
ok 1 - test/a.test.ts # time=8ms
`

const cases: readonly [name: string, tap: string, passed: number, failed: number][] = [
  ['counts a test once, however many assertions it has', PASSING_FILE, 1, 0],
  [
    'counts a failed test once, at any depth',
    `TAP version 14
1..1
# Subtest: test/a.test.ts
    # Subtest: outer
        # Subtest: inner
            not ok 1 - one
            ok 2 - two
            1..2
        not ok 1 - inner
        1..1
    not ok 1 - outer
    1..1
not ok 1 - test/a.test.ts
`,
    0,
    1
  ],
  [
    'reads subtests with braces, and counts a failed assertion beside tests as one failure',
    `TAP version 14
1..1
not ok 1 - test/a.test.ts {
    ok 1 - inner {
        ok 1 - one
        1..1
    }
    not ok 2 - two
    1..2
}
`,
    1,
    1
  ],
  [
    'counts a file that ends with an exit code after its last assertion as a failure',
    `TAP version 14
1..1
# Subtest: test/a.test.ts
    ok 1 - one
    1..1
not ok 1 - test/a.test.ts # time=8ms
  ---
  exitCode: 3
  ...
`,
    0,
    1
  ],
  [
    'counts a file that is killed between two assertions as a failure',
    `TAP version 14
1..2
# Subtest: test/a.test.ts
    ok 1 - one
    # test count(1) != plan(null)
not ok 1 - test/a.test.ts
  ---
  signal: SIGKILL
  ...
# Subtest: test/b.test.ts
    ok 1 - one
    1..1
ok 2 - test/b.test.ts
`,
    1,
    1
  ],
  [
    'counts a file that cannot be loaded as a failure',
    `TAP version 14
1..1
# Subtest: test/a.test.ts
    1..0 # no tests found
not ok 1 - test/a.test.ts
  ---
  exitCode: 1
  ...
`,
    0,
    1
  ],
  [
    'counts a file that times out as a failure',
    `TAP version 14
1..1
not ok 1 - timeout!
  ---
  expired: test/a.test.ts
  ...
`,
    0,
    1
  ],
  [
    'counts a bail-out as a failure',
    `TAP version 14
1..2
# Subtest: test/a.test.ts
    ok 1 - one
    Bail out! enough
Bail out! enough
`,
    0,
    1
  ],
  [
    'counts a file without tests as a failure',
    `TAP version 14
1..2
# Subtest: test/a.test.ts
    1..0 # no tests found
ok 1 - test/a.test.ts # SKIP no tests found
# Subtest: test/b.test.ts
    ok 1 - one
    1..1
ok 2 - test/b.test.ts
`,
    1,
    1
  ],
  ['counts a stream that breaks off as a failure', PASSING_FILE.slice(0, PASSING_FILE.indexOf('ok 2 - three')), 0, 1],
  ['counts files that are planned and never come as a failure', PASSING_FILE.replace('1..1', '1..2'), 1, 1],
  ['counts a run without tests as a failure', 'TAP version 14\n1..0\n', 0, 1],
  ['counts no output at all as a failure', '', 0, 1],
  [
    'counts skipped and todo tests as neither passed nor failed',
    `TAP version 14
1..1
# Subtest: test/a.test.ts
    ok 1 - one
    ok 2 - two # SKIP not on this machine
    not ok 3 - three # TODO
    1..3
ok 1 - test/a.test.ts
`,
    1,
    0
  ]
]

t.test('readTap', async (t) => {
  for (const [name, tap, passed, failed] of cases) {
    t.test(`readTap ${name}`, async (t) => {
      const totals = await read(tap)

      t.match(totals, { passed, failed })
    })
  }

  t.test('readTap reports the path and the diagnostics of a failure', async (t) => {
    const failures: unknown[] = []
    const tap = PASSING_FILE.replace(
      '        ok 2 - three\n',
      '        not ok 2 - three\n          ---\n          diff: x\n          ...\n'
    )

    await read(tap, { failure: (path, diag) => failures.push([path, diag]) })

    t.same(failures, [[['test/a.test.ts', 'inner', 'three'], { diff: 'x' }]])
  })

  t.test('readTap reports the totals and the output of each file', async (t) => {
    const files: unknown[] = []
    const tap = PASSING_FILE.replace('    ok 1 - one\n', '    {"level":30}\n    ok 1 - one\n')

    await read(tap, { fileEnd: (name, { passed }, output) => files.push([name, passed, output.trim()]) })

    t.same(files, [['test/a.test.ts', 1, '{"level":30}']])
  })

  t.test('readTap reports skipped tests with their reason', async (t) => {
    const skips: unknown[] = []
    const tap = PASSING_FILE.replace('ok 2 - three', 'ok 2 - three # SKIP no Redis')

    await read(tap, { skip: (path, reason) => skips.push([path.at(-1), reason]) })

    t.same(skips, [['three', 'no Redis']])
  })

  t.test('readTap passes on the comments of the runner', async (t) => {
    const comments: string[] = []

    await read(`${PASSING_FILE}# { total: 3, pass: 3 }\n`, { runner: (text) => comments.push(text) })

    t.same(comments, ['# { total: 3, pass: 3 }\n'])
  })
})
