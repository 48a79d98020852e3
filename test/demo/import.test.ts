import t from 'tap'
import { csv } from '../../demo/backend/export/csv.js'
import { readCsv } from '../../demo/backend/import/csv-rows.js'
import { form, startTestBackend } from './demo-backend.js'

const backend = await startTestBackend(t)
const admin = await backend.signIn('admin')

const request = (method: string, path: string, body?: unknown) => backend.request(method, path, admin, body)
const exported = async (): Promise<string> => (await request('GET', '/api/personnel/export/csv')).body
const imported = async (text: string | Buffer, token = admin) => {
  const { headers, body } = form(Buffer.from(text), 'personnel.csv')
  return backend.send('/api/personnel/import', {
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${token}` },
    ...(body !== undefined && { body })
  })
}
const person = async (id: string) => (await request('GET', `/api/personnel/${id}`)).json().data

t.test('reading a CSV file', async (t) => {
  const cases: readonly (readonly [string, string, readonly (readonly [number, Record<string, string>])[]])[] = [
    ['commas', 'a,b\r\n1,2\r\n', [[2, { a: '1', b: '2' }]]],
    ['semicolons', 'a;b\n1,5;2\n', [[2, { a: '1,5', b: '2' }]]],
    ['tabs', 'a\tb\n1\t2', [[2, { a: '1', b: '2' }]]],
    ['a byte order mark', '\uFEFFa\n1\n', [[2, { a: '1' }]]],
    [
      'line breaks in cells',
      'a,b\n"1\n2",3\n4,5\n',
      [
        [2, { a: '1\n2', b: '3' }],
        [4, { a: '4', b: '5' }]
      ]
    ],
    [
      'empty lines',
      'a\n\n1\n\n2\n',
      [
        [3, { a: '1' }],
        [5, { a: '2' }]
      ]
    ],
    ['missing cells', 'a,b\n1\n', [[2, { a: '1' }]]]
  ]
  for (const [title, text, rows] of cases) {
    t.test(`a CSV file with ${title} is read with its line numbers`, async (t) => {
      t.same(
        readCsv(Buffer.from(text)).rows.map(({ line, cells }) => [line, cells]),
        rows
      )
    })
  }

  const broken: readonly (readonly [string, string | Buffer, RegExp])[] = [
    ['an empty file', '', /no rows/],
    ['a header without rows', 'id,name\r\n', /no rows/],
    ['an open quotation mark', 'a,b\n"1,2\n', /quotation marks/],
    ['text after a quotation mark', 'a,b\n1,2\n"3"x,4\n', /quotation marks of line 3/],
    ['too many cells', 'a,b\n1,2,3\n', /Line 2 has 3 cells, the header line has 2/],
    ['another encoding', Buffer.from('name\nM\xfcller\n', 'latin1'), /UTF-8/],
    ['binary data', Buffer.from('name\na\u0000b\n'), /UTF-8/],
    ['too many rows', `a\n${'1\n'.repeat(5001)}`, /more than 5000 rows/]
  ]
  for (const [title, text, message] of broken) {
    t.test(`reading a CSV file reports ${title}`, async (t) => {
      t.throws(() => readCsv(Buffer.from(text)), { code: 'UNREADABLE_FILE', message })
    })
  }

  t.test('every text that is exported is read back unchanged', async (t) => {
    const texts = [
      'plain',
      'a,b;c\td',
      '"quoted"',
      'two\nlines',
      '=1+1',
      "'=1+1",
      "''-2",
      '+49 30',
      "'s",
      "'",
      '\t=1',
      '漢字'
    ]
    const { rows } = readCsv(
      Buffer.from(
        csv(
          ['text'],
          texts.map((text) => ({ text }))
        )
      )
    )
    t.same(
      rows.map(({ cells }) => cells.text),
      texts
    )
  })
})

t.test('importing personnel', async (t) => {
  t.test('an exported file changes nothing when it is imported again', async (t) => {
    const names = ['=cmd', '李小龙', 'עדה', '-', "O'Brien", 'Anna "Nan" Smith', 'a;b']
    for (const name of names)
      await request('POST', '/api/personnel', { name, notes: 'one\ntwo, "three"', startDate: 1763200000000 })
    const before = await exported()
    const response = await imported(before)
    t.same(response.json().data, { created: 0, changed: 0, unchanged: 160 + names.length })
    t.equal(await exported(), before)
  })

  t.test('an exported file restores deleted people with their transmitters', async (t) => {
    const before = await exported()
    const ids = ['3', '4', '5']
    await request('POST', '/api/personnel/batch-delete', { ids })
    t.not(await exported(), before)
    t.match((await imported(before)).json().data, { created: 3, changed: 0 })
    t.equal(await exported(), before)
  })

  t.test('a file with some columns changes only these', async (t) => {
    const { email, transmitterId } = await person('7')
    const response = await imported('id;jobTitle;isFirstAider\r\n7;Librarian;TRUE\r\n')
    t.same(response.json().data, { created: 0, changed: 1, unchanged: 0 })
    t.match(await person('7'), { jobTitle: 'Librarian', isFirstAider: true, email, transmitterId })
  })

  t.test('a row without an id adds a person', async (t) => {
    const response = await imported('firstName,lastName,department\nNoor,Östberg,research\n')
    t.match(response.json().data, { created: 1 })
    const { data } = (await request('GET', '/api/personnel?search=noor')).json()
    t.match(data, [{ name: 'Noor Östberg', department: 'Research', isActive: true }])
  })

  t.test('the full name follows a changed last name', async (t) => {
    const { firstName, name } = await person('8')
    await imported(`id,name,firstName,lastName\n8,${name},${firstName},Newname\n`)
    t.equal((await person('8')).name, `${firstName} Newname`)
  })

  t.test('two people swap their transmitters', async (t) => {
    const [one, other] = [(await person('10')).transmitterId, (await person('11')).transmitterId]
    const response = await imported(`id,transmitterId\n10,${other}\n11,${one}\n`)
    t.match(response.json().data, { changed: 2 })
    t.same([(await person('10')).transmitterId, (await person('11')).transmitterId], [other, one])
  })

  t.test('an empty cell removes the value', async (t) => {
    const { transmitterId } = await person('12')
    await imported('id,phone,transmitterId\n12,,\n')
    t.match(await person('12'), { phone: null, transmitterId: null })
    const { data } = (await request('GET', `/api/transmitters/${transmitterId}`)).json()
    t.match(data, { status: 'available', entityId: null })
  })

  t.test('one invalid line prevents the import and every error names its line and column', async (t) => {
    const before = await exported()
    const { transmitterId } = await person('21')
    const file = [
      'id,firstName,email,department,floorId,isActive,transmitterId',
      '20,Valid,valid@example.com,Research,f-1,true,',
      '22,Broken,no address,Research,f-1,maybe,',
      ',,,No Such Department,f-99,true,AC233F999999',
      '20,Again,,,,,',
      `23,Taken,,,,,${transmitterId}`,
      'a/b,Bad Id,,,,,'
    ].join('\r\n')
    const response = await imported(file)
    const { code, message, details } = response.json().error
    t.same([response.status, code, message], [422, 'IMPORT_REJECTED', 'Nothing was imported. 9 errors.'])
    t.same(details.map(({ path }: { path: string }) => path).toSorted(), [
      '/3/email',
      '/3/isActive',
      '/4/department',
      '/4/floorId',
      '/4/name',
      '/4/transmitterId',
      '/5/id',
      '/6/transmitterId',
      '/7/id'
    ])
    t.match(
      details.find(({ path }: { path: string }) => path === '/5/id'),
      { message: 'is also in line 2' }
    )
    t.equal(await exported(), before, 'nothing has changed')
  })

  t.test('unknown and repeated columns are reported', async (t) => {
    const { error } = (await imported('id,name,shoeSize,name\nno/id,Ada,40,Ada\n')).json()
    t.equal(error.details.length, 2, 'without the errors of the rows')
    t.match(error.details, [
      { path: '/1/shoeSize', message: 'is not a column of personnel' },
      { path: '/1/name', message: 'appears twice' }
    ])
  })

  t.test('at most fifty errors are listed', async (t) => {
    const rows = Array.from({ length: 200 }, (_, index) => `Name ${index},no address`)
    const { error } = (await imported(['name,email', ...rows].join('\n'))).json()
    t.equal(error.details.length, 50)
    t.equal(error.message, 'Nothing was imported. 200 errors.')
  })

  t.test('a viewer may not import', async (t) => {
    t.equal((await imported(await exported(), await backend.signIn('viewer'))).status, 403)
  })

  t.test('the audit log names the imported people', async (t) => {
    await imported('name\nGrete Logged\n')
    const { data } = (await request('GET', '/api/audit/logs?search=grete')).json()
    t.match(data, [{ subject: 'person Grete Logged', path: '/api/personnel/import' }])
  })
})
