import t from 'tap'
import { csv } from '../backend/export/csv.js'
import { readCsv } from '../backend/import/csv-rows.js'
import { form, startTestBackend } from './demo-backend.js'

const backend = await startTestBackend(t)
const admin = await backend.signIn('admin')

const request = (method: string, path: string, body?: unknown) => backend.request(method, path, admin, body)
const exported = async (): Promise<string> => (await request('GET', '/api/personnel/export/csv')).body
const upload = (path: string, text: string | Buffer, token = admin) => {
  const { headers, body } = form(Buffer.from(text), 'rows.csv')
  return backend.send(path, {
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${token}` },
    ...(body !== undefined && { body })
  })
}
const preview = async (text: string | Buffer, kind = 'personnel') =>
  (await upload(`/api/imports/${kind}/preview`, text)).json().data
const confirm = (text: string | Buffer, fingerprint: string, kind = 'personnel') =>
  upload(`/api/imports/${kind}?fingerprint=${fingerprint}`, text)
/** Imports a file with its preview. */
const imported = async (text: string | Buffer, kind = 'personnel') =>
  confirm(text, (await preview(text, kind)).fingerprint, kind)
interface Row {
  readonly group: string
  readonly line: number
  readonly reasons: readonly { readonly column: string; readonly message: string }[]
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
    ['many empty lines', `a\n${'\n'.repeat(15_000)}1\n`, [[15_002, { a: '1' }]]],
    ['missing cells', 'a,b\n1\n', [[2, { a: '1' }]]],
    ['another spelling of the columns', ' A ,_B\n1,2\n', [[2, { a: '1', b: '2' }]]],
    ['an empty column at the end', 'a,\n1,\n', [[2, { a: '1' }]]]
  ]
  for (const [title, text, rows] of cases) {
    t.test(`a CSV file with ${title} is read with its line numbers`, async (t) => {
      t.same(
        readCsv(Buffer.from(text), ['a', 'b']).rows.map(({ line, cells }) => [line, cells]),
        rows
      )
    })
  }

  const broken: readonly (readonly [string, string | Buffer, RegExp])[] = [
    ['an empty file', '', /no rows/],
    ['a row behind very many empty lines', `a\n${'\n'.repeat(30_000)}1\n`, /more than 20000 lines/],
    ['a header without rows', 'id,name\r\n', /no rows/],
    ['an open quotation mark', 'a,b\n"1,2\n', /quotation marks/],
    ['text after a quotation mark', 'a,b\n1,2\n"3"x,4\n', /quotation marks of line 3/],
    ['too many cells', 'a,b\n1,2,3\n', /Line 2 has 3 cells, the header line has 2/],
    ['another encoding', Buffer.from('name\nM\xfcller\n', 'latin1'), /UTF-8/],
    ['binary data', Buffer.from('name\na\u0000b\n'), /UTF-8/],
    ['too many rows', `a\n${'1\n'.repeat(5001)}`, /more than 5000 rows/],
    ['100,000 rows', `a\n${'1\n'.repeat(100_000)}`, /more than 5000 rows/],
    ['an unknown column', 'a,shoeSize\n1,2\n', /unknown columns: "shoeSize"\. Known columns: a, b, id, name\./],
    ['a column twice', 'a,b,A\n1,2,3\n', /a column twice: "a"/],
    ['a column without a name', 'a,\n1,2\n', /Column 2 has no name/],
    ['UTF-16', Buffer.from('\uFEFFa\n1\n', 'utf16le'), /UTF-8/]
  ]
  for (const [title, text, message] of broken) {
    t.test(`reading a CSV file reports ${title}`, async (t) => {
      t.throws(() => readCsv(Buffer.from(text), ['a', 'b', 'id', 'name']), { code: 'UNREADABLE_FILE', message })
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
      ),
      ['text']
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
    t.same(response.json().data, { new: 0, changed: 0, unchanged: 160 + names.length, duplicate: 0, faulty: 0 })
    t.equal(await exported(), before)
  })

  t.test('an exported file restores deleted people with their transmitters', async (t) => {
    const before = await exported()
    const ids = ['3', '4', '5']
    await request('POST', '/api/personnel/batch-delete', { ids })
    t.not(await exported(), before)
    t.match((await imported(before)).json().data, { new: 3, changed: 0 })
    t.equal(await exported(), before)
  })

  t.test('a file with some columns changes only these', async (t) => {
    const { email, transmitterId } = await person('7')
    const response = await imported('id;jobTitle;isFirstAider\r\n7;Librarian;TRUE\r\n')
    t.match(response.json().data, { new: 0, changed: 1, unchanged: 0 })
    t.match(await person('7'), { jobTitle: 'Librarian', isFirstAider: true, email, transmitterId })
  })

  t.test('a row without an id adds a person', async (t) => {
    const response = await imported('firstName,lastName,department\nNoor,Östberg,research\n')
    t.match(response.json().data, { new: 1 })
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

  t.test('faulty rows name their line and column, and the others are imported', async (t) => {
    const { transmitterId } = await person('21')
    const file = [
      'id,firstName,email,department,floorId,isActive,transmitterId',
      '20,Valid,valid@example.com,Research,f-1,true,',
      '22,Broken,no address,Research,f-1,maybe,',
      ',,,No Such Department,f-99,true,AC233F999999',
      `23,Taken,,,,,${transmitterId}`,
      'a/b,Bad Id,,,,,',
      ',Unknown Badge,,,,,AC233F999999'
    ].join('\r\n')
    const { counts, rows } = await preview(file)
    t.same(counts, { new: 0, changed: 1, unchanged: 0, duplicate: 0, faulty: 5 })
    const reasons = rows.flatMap((row: Row) => row.reasons.map(({ column }) => `${row.line} ${column}`))
    t.same(reasons.toSorted(), [
      '3 email',
      '3 isActive',
      '4 department',
      '4 floorId',
      '4 name, firstName, lastName',
      '5 transmitterId',
      '6 id',
      '7 transmitterId'
    ])
    t.match((await imported(file)).json().data, { changed: 1, faulty: 5 })
    t.match(await person('20'), { firstName: 'Valid' })
    t.equal((await person('21')).transmitterId, transmitterId)
  })

  t.test('a row that is rejected does not give its transmitter to another row', async (t) => {
    const { transmitterId } = await person('31')
    const file = `id,isActive,transmitterId\n30,true,${transmitterId}\n31,maybe,\n`
    t.match((await preview(file)).counts, { changed: 0, faulty: 2 })
  })

  t.test('rows with the id, e-mail address or number of others are duplicates, and are left out', async (t) => {
    const [{ email, name }, { employeeId }] = [await person('40'), await person('41')]
    const file = [
      'id,name,email,employeeId',
      `,Somebody Else,${email.toUpperCase()},`,
      `,Third Person,,${employeeId}`,
      ',First Twin,twin@example.com,',
      ',Second Twin,TWIN@example.com,',
      'fresh,Fresh Person,,',
      'fresh,Fresh Again,,'
    ].join('\n')
    const { counts, rows } = await preview(file)
    t.same(counts, { new: 2, changed: 0, unchanged: 0, duplicate: 4, faulty: 0 })
    t.same(
      rows.filter(({ group }: Row) => group === 'duplicate').map(({ line, reasons }: Row) => [line, reasons]),
      [
        [2, [{ column: 'email', message: `belongs to ${name} already` }]],
        [3, [{ column: 'employeeId', message: `belongs to ${(await person('41')).name} already` }]],
        [5, [{ column: 'email', message: 'is also in line 4' }]],
        [7, [{ column: 'id', message: 'is also in line 6' }]]
      ]
    )
    t.match((await imported(file)).json().data, { new: 2, duplicate: 4 })
  })

  t.test('the preview shows the values before and after, and stores nothing', async (t) => {
    const before = await exported()
    const { department, lastName, firstName, name } = await person('45')
    const other = department === 'Research' ? 'Quality' : 'Research'
    const { rows } = await preview(`id,lastName,department\n45,Newer,${other}\n,Added,\n`)
    t.match(rows, [
      {
        group: 'changed',
        line: 2,
        id: '45',
        changes: [
          { column: 'lastName', before: lastName, after: 'Newer' },
          { column: 'name', before: name, after: `${firstName} Newer` },
          { column: 'department', before: department, after: other }
        ]
      },
      { group: 'new', line: 3, name: 'Added', changes: [{ column: 'lastName', after: 'Added' }, { column: 'name' }] }
    ])
    t.equal(await exported(), before)
    const { data } = (await request('GET', '/api/audit/logs?limit=1')).json()
    t.not(data[0].path, '/api/imports/personnel/preview')
  })

  t.test('an import that differs from its preview is rejected with a new preview', async (t) => {
    const file = 'id,jobTitle\n50,Librarian\n'
    const { fingerprint } = await preview(file)
    t.match((await confirm('id,jobTitle\n50,Director\n', fingerprint)).json().error, { code: 'IMPORT_CHANGED' })
    await request('PUT', '/api/personnel/50', { jobTitle: 'Archivist' })
    const response = await confirm(file, fingerprint)
    t.equal(response.status, 409)
    const { code, preview: current } = response.json().error
    t.equal(code, 'IMPORT_CHANGED')
    t.match(current.rows, [{ changes: [{ column: 'jobTitle', before: 'Archivist', after: 'Librarian' }] }])
    t.equal((await person('50')).jobTitle, 'Archivist', 'nothing is stored')
    t.match((await confirm(file, current.fingerprint)).json().data, { changed: 1 })
    const again = await confirm(file, current.fingerprint)
    t.match(again.json().error, { code: 'IMPORT_CHANGED' }, 'the same import cannot be confirmed twice')
  })

  t.test('a change of another field between preview and import is kept', async (t) => {
    const file = 'id,jobTitle\n51,Librarian\n'
    const { fingerprint } = await preview(file)
    await request('PUT', '/api/personnel/51', { notes: 'changed meanwhile' })
    t.equal((await confirm(file, fingerprint)).status, 200)
    t.match(await person('51'), { jobTitle: 'Librarian', notes: 'changed meanwhile' })
  })

  t.test('an import without a preview is rejected', async (t) => {
    for (const path of ['/api/imports/personnel', '/api/personnel/import'])
      t.match((await upload(path, 'name\nNobody\n')).json().error, { code: 'PREVIEW_REQUIRED' }, path)
  })

  t.test('a file without the needed columns is reported once', async (t) => {
    const { error } = (await upload('/api/imports/personnel/preview', 'email,phone\na@example.com,1\n')).json()
    t.equal(error.message, 'The file lacks columns: name or firstName or lastName. It has: email, phone.')
  })

  t.test('a form without a file is rejected', async (t) => {
    const empty = await backend.send('/api/imports/personnel/preview', {
      method: 'POST',
      headers: { 'content-type': 'multipart/form-data; boundary=edge', authorization: `Bearer ${admin}` },
      body: '--edge--\r\n'
    })
    t.same([empty.status, empty.json().error.code], [400, 'NO_FILE'])
  })

  t.test('a viewer may not import', async (t) => {
    const viewer = await backend.signIn('viewer')
    for (const kind of ['personnel', 'assets', 'visits'])
      for (const path of [`/api/imports/${kind}/preview`, `/api/imports/${kind}?fingerprint=x`])
        t.equal((await upload(path, await exported(), viewer)).status, 403, path)
  })

  t.test('the audit log names the imported people', async (t) => {
    await imported('name\nGrete Logged\n')
    const { data } = (await request('GET', '/api/audit/logs?search=grete')).json()
    t.match(data, [{ subject: 'person Grete Logged', path: '/api/imports/personnel' }])
  })
})

t.test('importing assets', async (t) => {
  t.test('an exported file changes nothing, and restores deleted assets', async (t) => {
    const before = (await request('GET', '/api/assets/export/csv')).body
    t.match((await imported(before, 'assets')).json().data, {
      new: 0,
      changed: 0,
      unchanged: 60,
      faulty: 0,
      duplicate: 0
    })
    await request('DELETE', '/api/assets/7')
    t.match((await imported(before, 'assets')).json().data, { new: 1 })
    t.equal((await request('GET', '/api/assets/export/csv')).body, before)
  })

  t.test('assets are added and changed, and duplicates of a tag are left out', async (t) => {
    const free = (await request('GET', '/api/transmitters/unassigned?limit=1')).json().data[0].id
    const file = [
      'Name,Asset tag,value,transmitterId,floorId',
      `Pump 900,A-0900,12.50,${free},f-2`,
      'Pump 901,A-0001,,,',
      'Pump 902,A-0902,a lot,,'
    ].join('\r\n')
    const { counts, rows } = await preview(file, 'assets')
    t.same(counts, { new: 1, changed: 0, unchanged: 0, duplicate: 1, faulty: 1 })
    t.match(rows[2].reasons, [{ column: 'value', message: /must be number/ }])
    t.equal((await imported(file, 'assets')).status, 200)
    const [pump] = (await request('GET', '/api/assets?search=A-0900')).json().data
    t.match(pump, { name: 'Pump 900', value: 12.5, transmitterId: free, status: 'in use', isActive: true })
  })
})

t.test('importing visits', async (t) => {
  t.test('an exported file changes nothing', async (t) => {
    const before = (await request('GET', '/api/visits/export/csv')).body
    const { counts } = await preview(before, 'visits')
    t.match(counts, { new: 0, changed: 0, faulty: 0, duplicate: 0 })
  })

  t.test('visits are added with their host, in the time of the site, once', async (t) => {
    const { name: host, email } = await person('60')
    const file = [
      'name;company;e-mail;host;expectedFrom;expectedTo',
      `Iris Import;Corvus Audit;iris@example.com;${email};2030-07-01 09:00;2030-07-01 17:00`,
      `Ivan Import;Corvus Audit;ivan@example.com;Nobody Known;2030-01-10 09:00;2030-01-10 17:00`,
      `Ines Import;Corvus Audit;ines@example.com;;2030-01-10 09:00;2030-01-10 08:00`,
      `Ilse Import;Corvus Audit;ilse@example.com;;tomorrow;2030-01-10`
    ].join('\n')
    const { counts, rows } = await preview(file, 'visits')
    t.same(counts, { new: 1, changed: 0, unchanged: 0, duplicate: 0, faulty: 3 })
    t.match(
      rows.slice(1).map(({ reasons }: Row) => reasons.map(({ column }) => column)),
      [['host'], ['expectedTo'], ['expectedFrom', 'expectedTo']]
    )
    t.equal((await imported(file, 'visits')).status, 200)
    const [visit] = (await request('GET', '/api/visits?search=iris')).json().data
    // Summer time in Berlin.
    t.match(visit, { host, kind: 'visitor', status: 'expected', expectedFrom: '2030-07-01T07:00:00.000Z' })
    const again = await preview(file, 'visits')
    t.match(again.counts, { new: 0, duplicate: 1 })
    t.match(again.rows[0].reasons, [{ column: 'email', message: 'belongs to Iris Import already' }, { column: 'name' }])
  })

  t.test('a changed kind applies to the transmitter of a visitor on site', async (t) => {
    await imported('id,kind\nvisitor-3,contractor\n', 'visits')
    const { kind, transmitterId } = (await request('GET', '/api/visits/visitor-3')).json().data
    t.equal(kind, 'contractor')
    t.match((await request('GET', `/api/transmitters/${transmitterId}`)).json().data, { entity_type: 'contractor' })
  })
})
