import t from 'tap'
import { startTestBackend } from './demo-backend.js'

const backend = await startTestBackend(t)
const { simulator, rollCall } = backend.backend
const admin = await backend.signIn('admin')

/** Advances the simulation and the clock. */
const seconds = async (count: number): Promise<void> => {
  for (let second = 0; second < count; second += 1) {
    backend.advance(1000)
    await simulator.tick()
  }
  await rollCall.run()
}

const send = async (method: string, path: string, body?: object) =>
  (await backend.request(method, path, admin, body)).json()
const trigger = async (body: object) => (await send('POST', '/api/emergency/trigger', body)).data
const end = (id: string, resolution = 'Over.') =>
  send('PUT', `/api/emergency/${id}`, { status: 'resolved', resolution })

interface Person {
  readonly transmitterId: string
  readonly name: string
  readonly kind: string
  readonly status: string
  readonly company: string | null
  readonly secondsToSafe: number | null
  readonly markedBy: string | null
}

await seconds(1)

t.test('a visitor is counted in the muster but is not personnel', async (t) => {
  const totals = async (): Promise<Record<string, number>> => {
    const { summary, byKind } = (await backend.request('GET', '/api/emergency/muster', admin)).json().data
    const kinds = byKind.map(({ kind, total }: { kind: string; total: number }) => [kind, total])
    return { all: summary.total, ...Object.fromEntries(kinds) }
  }
  const before = await totals()
  t.same([before.visitor, before.contractor], [30, 20])
  // A visitor whose id equals that of a person.
  const { id: entityId } = (await send('POST', '/api/personnel', { name: 'Nobody' })).data
  const guest = { entity_type: 'visitor', entityId, firstName: 'Gwen', lastName: 'Guest', company: 'Fjord Partners' }
  const { id } = (await send('POST', '/api/transmitters', guest)).data
  t.match((await send('GET', `/api/transmitters/${id}`)).data, { carriedBy: 'Gwen Guest', company: 'Fjord Partners' })
  t.equal((await send('GET', `/api/personnel/${entityId}`)).data.transmitterId, null)
  t.same(await totals(), { ...before, all: Number(before.all) + 1, visitor: 31 })
  // From now on the guest has a position.
  await seconds(4)
})

t.test('an emergency', async (t) => {
  const muster = async () => (await backend.request('GET', '/api/emergency/muster', admin)).json().data
  const triggered = await backend.request('POST', '/api/emergency/trigger', admin, {
    type: 'fire',
    buildingId: 2,
    isDrill: true
  })
  const { id } = triggered.json().data

  t.test('everybody in the building is missing at the start of an emergency', async (t) => {
    const { emergency, buildingId, building, summary } = await muster()
    t.same([emergency.id, buildingId, building, summary.safe], [id, '2', { name: 'Research Wing' }, 0])
    t.ok(summary.missing > 20)
  })

  t.test('a person is marked safe by a user, and the mark can be removed', async (t) => {
    const { people, summary } = await muster()
    const { transmitterId, name } = people[0]
    const change = (body: object) => backend.request('PUT', `/api/emergency/${id}`, admin, body)
    const first = async () =>
      (await muster()).people.find((one: { transmitterId: string }) => one.transmitterId === transmitterId)

    t.equal((await change({ markSafe: [transmitterId, 'unknown transmitter'] })).status, 200)
    t.match(await first(), { status: 'safe', markedBy: 'Alex Admin', markedAt: String })
    t.equal((await muster()).summary.safe, summary.safe + 1)
    const { data } = (await backend.request('GET', '/api/audit/logs?action=emergency.marked', admin)).json()
    t.match(data[0], { userName: 'Alex Admin', details: { message: `${name} marked safe` } })

    await change({ unmarkSafe: [transmitterId] })
    t.match(await first(), { status: 'missing', markedBy: null })
  })

  t.test('everybody is safe after the time to walk out', async (t) => {
    let { summary } = await muster()
    for (let rounds = 0; rounds < 15 && summary.missing > 0; rounds += 1) {
      await seconds(20)
      summary = (await muster()).summary
    }
    t.same([summary.missing, summary.safe], [0, summary.total])
  })

  t.test('a resolved emergency ends and has its events', async (t) => {
    await backend.request('PUT', `/api/emergency/${id}`, admin, { status: 'resolved', resolution: 'A drill.' })
    t.same((await backend.request('GET', '/api/emergency/active', admin)).json().data, [])
    const { data } = (await backend.request('GET', `/api/emergency/events?emergencyId=${id}`, admin)).json()
    t.same(data.map(({ kind }: { kind: string }) => kind).toSorted(), ['marked', 'resolved', 'triggered', 'unmarked'])
    const past = await backend.request('GET', '/api/emergency?status=resolved&sort=startedAt&order=desc', admin)
    const [ended] = past.json().data
    t.match(ended, { id, outcome: 'ended', title: 'Fire', muster: { missing: 0 } })
    t.equal(ended.muster.safe, ended.muster.total, 'the counts at its end are stored')
  })

  t.test('an ended emergency cannot be ended again, and nobody can be marked safe', async (t) => {
    for (const body of [
      { status: 'resolved', resolution: 'Another one.' },
      { status: 'active' },
      { markSafe: ['AC233F000001'] }
    ]) {
      const response = await backend.request('PUT', `/api/emergency/${id}`, admin, body)
      const { code, message } = response.json().error
      t.same([response.status, code, message], [409, 'EMERGENCY_ENDED', 'The drill has already ended.'])
    }
    t.equal((await backend.request('GET', `/api/emergency/${id}`, admin)).json().data.resolution, 'A drill.')
  })
})

t.test('the instruction of an alarm', async (t) => {
  t.test('an alarm has the instruction for its type, and people gather only if it says so', async (t) => {
    for (const [type, message, gathers] of [
      ['fire', /^Leave the building/, true],
      ['intruder', /^Stay where you are/, false],
      ['medical', /^First aiders go/, false],
      ['chemical', /go to the assembly area/, true],
      ['other', /follow the instructions/, false]
    ] as const) {
      const alarm = await trigger({ type, buildingId: 3 })
      t.match(alarm, { message, gathers, isDrill: false, buildingName: 'Workshop' }, `${type}`)
      if (type !== 'fire' && type !== 'chemical') t.notMatch(alarm.message, /leave/i, `${type}`)
      await end(alarm.id)
    }
  })

  t.test('nobody walks out during an intruder alarm, and the assembly area is not safe', async (t) => {
    const alarm = await trigger({ type: 'intruder', buildingId: 1, message: 'Evacuate the building!' })
    t.match(alarm.message, /^Stay where you are/, 'the message of the request contradicts the type')
    await seconds(90)
    const { summary } = (await send('GET', '/api/emergency/muster')).data
    t.equal(summary.safe, 0)
    await end(alarm.id)
  })

  t.test('the instructions of a building are changed by administrators', async (t) => {
    const change = (body: object, token = admin) =>
      backend.request('PATCH', '/api/emergency/instructions/2', token, body)
    const fire = 'Leave by the south stairs.'
    t.equal((await change({ fire, chemical: 'Close all windows.', chemicalGathers: false })).status, 200)
    const { data } = await send('GET', '/api/emergency/instructions')
    t.match(data, [
      { id: '1', name: 'Main House', instructions: { fire: /nearest safe exit/, chemicalGathers: true } },
      { id: '2', instructions: { fire, chemical: 'Close all windows.', chemicalGathers: false, medical: /^First/ } },
      { id: '3' }
    ])
    for (const [body, message, gathers] of [
      [{ type: 'fire', buildingId: 2 }, fire, true],
      [{ type: 'chemical', buildingId: 2 }, 'Close all windows.', false],
      [{ type: 'fire', buildingId: '1' }, /nearest safe exit/, true],
      [{ type: 'fire' }, /nearest safe exit/, true],
      [{ type: 'chemical' }, /assembly area/, true]
    ] as const) {
      const alarm = await trigger(body)
      t.match(alarm, { message, gathers })
      await end(alarm.id)
    }
    t.equal((await change({ fire }, await backend.signIn('operator'))).status, 403)
  })

  t.test('an instruction that would endanger people, or an empty one, is rejected', async (t) => {
    const change = (body: object) => send('PATCH', '/api/emergency/instructions/2', body)
    for (const intruder of ['Leave the building!', 'Run and evacuate this site', 'Hide, then exit the premises.'])
      t.match(await change({ intruder }), { error: { details: [{ path: '/intruder', message: /must not tell/ }] } })
    t.match(await change({ intruder: 'Hide. Do not leave the building.' }), { success: true })
    t.match(await change({ fire: '' }), { error: { code: 'VALIDATION_FAILED', details: [{ path: '/fire' }] } })
    t.match(await change({ unknown: 'x' }), { error: { code: 'VALIDATION_FAILED' } })
  })
})

t.test('alarm and drill', async (t) => {
  const drill = await trigger({ type: 'fire', buildingId: 1, isDrill: true })
  const alarm = await trigger({ type: 'medical', buildingId: 2 })
  t.teardown(() => end(alarm.id))

  t.test('an alarm ends the drill and says so in its report', async (t) => {
    t.match((await send('GET', '/api/emergency/active')).data, [{ id: alarm.id }])
    const { emergency, timeline } = (await send('GET', `/api/emergency/${drill.id}/report`)).data
    const resolution = 'Ended by the alarm: Medical emergency in Research Wing.'
    t.match(emergency, { status: 'resolved', resolution, muster: { total: Number } })
    t.match(timeline.at(-1), { kind: 'resolved', text: resolution, userName: 'Alex Admin' })
  })

  t.test('a drill cannot start during an alarm, in any way', async (t) => {
    const rejected = { error: { code: 'ALARM_ACTIVE', message: 'A drill cannot start during an alarm.' } }
    t.match(await send('POST', '/api/emergency/trigger', { type: 'fire', isDrill: true }), rejected)
    const reported = await send('POST', '/api/emergency', { type: 'fire', isDrill: true })
    t.match(await send('PUT', `/api/emergency/${reported.data.id}`, { status: 'active' }), {
      error: { details: [{ path: '/status' }] }
    })
  })

  t.test('a second alarm is active beside the first, and each has its muster', async (t) => {
    const second = await trigger({ type: 'fire', buildingId: 3 })
    const { data } = await send('GET', '/api/context/status')
    t.same(
      data.emergencies.map(({ id }: { id: string }) => id),
      [second.id, alarm.id]
    )
    t.ok(Date.parse(data.now) - Date.parse(data.lastPositionAt) < 60_000)
    const muster = async (id: string) => (await send('GET', `/api/emergency/muster?emergencyId=${id}`)).data
    t.match(await muster(alarm.id), { emergency: { id: alarm.id }, building: { name: 'Research Wing' } })
    t.match(await muster(second.id), { emergency: { id: second.id }, building: { name: 'Workshop' } })
    await end(second.id)
  })
})

t.test('the report of a drill', async (t) => {
  const drill = await trigger({ type: 'fire', buildingId: 3, isDrill: true })
  const { people } = (await send('GET', '/api/emergency/muster')).data
  const [visitor] = people.filter(({ kind }: Person) => kind === 'visitor')
  t.match(visitor.company, /\w+ \w+/, 'visitors have a company')
  await seconds(20)
  await send('PUT', `/api/emergency/${drill.id}`, { markSafe: [visitor.transmitterId] })
  await seconds(60)
  await end(drill.id, 'Too slow.')
  const read = async () => (await send('GET', `/api/emergency/${drill.id}/report`)).data
  const report = await read()
  await seconds(120)

  t.test('a report has everybody with the time to safe, and those who are still missing', async (t) => {
    const of = (status: string) => report.people.filter((person: Person) => person.status === status)
    t.ok(report.summary.missing > 0 && report.summary.safe > 1)
    t.equal(report.people.length, people.length)
    t.same([of('missing').length, of('safe').length], [report.summary.missing, report.summary.safe])
    t.ok(of('missing').every(({ secondsToSafe }: Person) => secondsToSafe === null))
    const { startedAt, resolvedAt } = report.emergency
    const longest = (Date.parse(resolvedAt) - Date.parse(startedAt)) / 1000 + 1
    t.ok(of('safe').every(({ secondsToSafe }: Person) => secondsToSafe !== null && secondsToSafe <= longest))
    const marked = report.people.find(({ transmitterId }: Person) => transmitterId === visitor.transmitterId)
    t.match(marked, { markedBy: 'Alex Admin', status: 'safe', company: visitor.company })
    t.ok(report.times.first <= report.times.median && report.times.median <= report.times.last)
  })

  t.test('a report has the timeline with authors', async (t) => {
    const texts = report.timeline.map(({ kind, text, userName }: Record<string, string>) => [kind, text, userName])
    t.match(texts[0], ['triggered', /^Leave the building/, 'Alex Admin'])
    t.ok(texts.some(([kind, text]: string[]) => kind === 'marked' && text === `${visitor.name} marked safe`))
    t.same(texts.at(-1), ['resolved', 'Too slow.', 'Alex Admin'])
  })

  t.test('a report does not change after the end', async (t) => {
    t.same(await read(), report)
    await send('POST', '/api/transmitters/assign', { transmitterId: visitor.transmitterId, entityId: null })
    t.same(await read(), report, 'without the transmitter')
  })
})

t.test('a person who walks to another building stays on the roll', async (t) => {
  const drill = await trigger({ type: 'fire', buildingId: 2, isDrill: true })
  const muster = async () => (await send('GET', '/api/emergency/muster')).data.people
  const [person] = (await muster()).filter(({ kind }: Person) => kind === 'employee')
  await send('PUT', `/api/personnel/${person.personnelId}`, { floorId: 'f-1', buildingId: '1' })
  await send('PATCH', `/api/transmitters/${person.transmitterId}`, { isActive: false })
  await seconds(4)
  t.ok(
    (await muster()).some(({ transmitterId }: Person) => transmitterId === person.transmitterId),
    'also while switched off'
  )
  await send('PATCH', `/api/transmitters/${person.transmitterId}`, { isActive: true })
  await seconds(4)
  t.match(
    (await muster()).find(({ transmitterId }: Person) => transmitterId === person.transmitterId),
    { buildingName: 'Main House', status: 'missing' }
  )
  await send('POST', '/api/transmitters/assign', { transmitterId: person.transmitterId, entityId: null })
  const after = async () => (await muster()).find(({ transmitterId }: Person) => transmitterId === person.transmitterId)
  t.match(await after(), { name: person.name, status: 'unknown' }, 'without the transmitter')
  await send('PUT', `/api/emergency/${drill.id}`, { markSafe: [person.transmitterId] })
  t.match(await after(), { status: 'safe', markedBy: 'Alex Admin' })
  await end(drill.id)
})

t.test('requests at the same time', async (t) => {
  const active = async (): Promise<{ readonly id: string; readonly isDrill: boolean }[]> =>
    (await send('GET', '/api/context/status')).data.emergencies
  const together = <T>(count: number, request: (index: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, (_, index) => request(index)))

  t.test('no drill stays active when alarms and drills are triggered at the same time', async (t) => {
    await together(6, (index) =>
      trigger({ type: index < 3 ? 'fire' : 'medical', buildingId: 1, isDrill: index % 2 === 0 })
    )
    const alarms = await active()
    t.same(
      alarms.map(({ isDrill }) => isDrill),
      [false, false]
    )
    for (const { id } of alarms) await end(id)
  })

  t.test('only one of several requests ends an emergency, and nobody is marked safe afterwards', async (t) => {
    const { id } = await trigger({ type: 'fire', buildingId: 1 })
    const { people } = (await send('GET', '/api/emergency/muster')).data
    const responses = await together(8, (index) =>
      index % 2 === 0
        ? end(id, `End ${index}.`)
        : send('PUT', `/api/emergency/${id}`, { markSafe: [people[index].transmitterId] })
    )
    const { timeline } = (await send('GET', `/api/emergency/${id}/report`)).data
    const kinds = timeline.map(({ kind }: { kind: string }) => kind)
    t.equal(kinds.filter((kind: string) => kind === 'resolved').length, 1)
    t.equal(kinds.at(-1), 'resolved')
    t.equal(responses.filter(({ success }) => success).length, kinds.indexOf('resolved'))
    t.ok(responses.every(({ success, error }) => success || error.code === 'EMERGENCY_ENDED'))
  })
})

t.test('a change of an emergency', async (t) => {
  const put = (id: string, body: object) => send('PUT', `/api/emergency/${id}`, body)
  const { id } = await trigger({ type: 'intruder', buildingId: 1 })
  const { people } = (await send('GET', '/api/emergency/muster')).data
  const [{ transmitterId, name }] = people

  t.test('an alarm does not become a drill, and does not disappear without an end', async (t) => {
    for (const body of [
      ...[{ isDrill: true }, { status: 'reported' }, { status: 'gone' }],
      ...[{ type: 'Fire' }, { type: null }, { outcome: 'mistake' }, { status: 'resolved', outcome: 'nothing' }]
    ])
      t.match(await put(id, body), { error: { code: 'VALIDATION_FAILED' } }, JSON.stringify(body))
    const { data } = await put(id, { status: null, startedAt: null, gathers: true, muster: {} })
    t.match(data, { status: 'active', startedAt: String, gathers: false })
  })

  t.test('a mark that exists already is no second event', async (t) => {
    await put(id, { markSafe: [transmitterId] })
    await put(id, { markSafe: [transmitterId] })
    const { data } = await send('GET', `/api/emergency/events?emergencyId=${id}&kind=marked`)
    t.match(data, [{ message: `${name} marked safe` }])
    t.equal(data.length, 1)
  })

  t.test('a request that marks people and ends the emergency does both', async (t) => {
    await put(id, { unmarkSafe: [transmitterId], status: 'resolved', startedAt: Date.now() - 60_000 })
    const { emergency, timeline } = (await send('GET', `/api/emergency/${id}/report`)).data
    t.match(emergency, { status: 'resolved', muster: { total: Number }, startedAt: /^\d{4}-.*Z$/ })
    t.match(timeline.at(-1), { kind: 'resolved' })
  })

  t.test('the type and the outcome of an ended emergency cannot be changed, its description can', async (t) => {
    for (const body of [{ isDrill: true }, { buildingId: 2 }, { outcome: 'mistake' }])
      t.match(await put(id, body), { error: { code: 'EMERGENCY_ENDED' } }, JSON.stringify(body))
    t.match(await put(id, { description: 'A cook.', buildingId: 1 }), { data: { description: 'A cook.' } })
  })
})

t.test('raising an alarm', async (t) => {
  const raise = (body: object, key?: string, token = admin) =>
    backend.send('/api/emergency/trigger', {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...(key !== undefined && { 'idempotency-key': key })
      },
      body: JSON.stringify(body)
    })
  const active = async (): Promise<{ readonly id: string }[]> => (await send('GET', '/api/emergency/active')).data

  t.test('an alarm needs a known type', async (t) => {
    for (const body of [{}, { type: '' }, { type: null }, { type: 7 }]) t.equal((await raise(body)).status, 400)
    for (const type of ['Fire', 'alien', ' fire', 'fire,medical']) {
      const message = 'must be one of fire, intruder, medical, chemical, other'
      for (const path of ['/api/emergency/trigger', '/api/emergency'])
        t.match(await send('POST', path, { type }), { error: { details: [{ path: '/type', message }] } }, type)
    }
    t.same(await active(), [])
  })

  t.test('a repeated request with the same key raises no second alarm', async (t) => {
    const body = { type: 'fire', buildingId: '2' }
    const first = await raise(body, 'key-0001')
    const { id } = first.json().data
    t.equal(first.status, 201)
    for (let times = 0; times < 2; times += 1) {
      const again = await raise(body, 'key-0001')
      t.same([again.status, again.json().data.id, again.json().data.joined], [200, id, undefined])
    }
    await end(id)
    t.match((await raise(body, 'key-0001')).json().data, { id, status: 'resolved' }, 'also after its end')
    t.same(await active(), [])
    const concurrent = await Promise.all([1, 2, 3, 4].map(() => raise({ type: 'medical' }, 'key-0002')))
    t.equal(new Set(concurrent.map((response) => response.json().data.id)).size, 1)
    t.same(concurrent.map(({ status }) => status).toSorted(), [200, 200, 200, 201])
    const [{ id: medical } = { id: '' }] = await active()
    await end(medical)
    const other = await raise({ type: 'medical' }, 'key-0002', await backend.signIn('operator'))
    t.equal(other.status, 201, 'a key belongs to one user')
    await end(other.json().data.id)
    for (const key of ['short', 'x'.repeat(129), 'with a space'])
      t.match((await raise(body, key)).json(), { error: { code: 'VALIDATION_FAILED' } }, key)
    t.same(await active(), [])
  })

  t.test('an identical alarm is joined, another one is not', async (t) => {
    const first = await raise({ type: 'fire', buildingId: 2 })
    const { id } = first.json().data
    t.equal(first.json().data.joined, undefined)
    const joined = await raise({ type: 'fire', buildingId: '2', message: 'Smoke.' }, 'key-0003')
    t.match([joined.status, joined.json().data], [200, { id, joined: true, message: first.json().data.message }])
    t.match((await raise({ type: 'fire', buildingId: '2' }, 'key-0003')).json().data, { id, joined: true })
    const events = (await send('GET', `/api/emergency/events?emergencyId=${id}&kind=joined`)).data
    t.match(events, [{ kind: 'joined', userEmail: 'admin@example.com' }])
    t.equal(events.length, 1)
    const others = [
      await raise({ type: 'fire' }),
      await raise({ type: 'fire', buildingId: 1 }),
      await raise({ type: 'other', buildingId: 2 })
    ]
    t.same(
      others.map(({ status }) => status),
      [201, 201, 201]
    )
    for (const alarm of await active()) await end(alarm.id)
  })

  t.test(
    'active alarms are in the order of danger, and the muster is that of the first that people gather for',
    async (t) => {
      const types = ['other', 'medical', 'chemical', 'fire', 'intruder']
      for (const type of types) await raise({ type, buildingId: 3 })
      const { id: newest } = (await raise({ type: 'fire', buildingId: 1 })).json().data
      const found: Record<string, unknown>[] = (await send('GET', '/api/context/status')).data.emergencies
      t.same(
        found.map(({ type }) => type),
        ['intruder', 'fire', 'fire', 'chemical', 'medical', 'other']
      )
      t.match(found[1], { id: newest, gathers: true, buildingId: '1', buildingName: 'Main House', message: /^Leave/ })
      t.same(await active(), found)
      t.equal((await send('GET', '/api/emergency/muster')).data.emergency.id, newest)
      t.equal((await send('GET', `/api/emergency/muster?emergencyId=${found[0]?.id}`)).data.emergency.type, 'intruder')
      for (const alarm of await active()) await end(alarm.id)
    }
  )

  t.test('an alarm that was raised by mistake says so in the list and in the report', async (t) => {
    const { id } = (await raise({ type: 'chemical', buildingId: 1 })).json().data
    const body = { status: 'resolved', outcome: 'mistake', resolution: 'Wrong button.' }
    t.match((await send('PUT', `/api/emergency/${id}`, body)).data, { status: 'resolved', outcome: 'mistake' })
    const { data } = await send('GET', '/api/emergency?outcome=mistake')
    t.match(data, [{ id }])
    const { emergency, timeline } = (await send('GET', `/api/emergency/${id}/report`)).data
    t.equal(emergency.outcome, 'mistake')
    t.match(timeline.at(-1), { kind: 'resolved', text: 'Raised by mistake. Wrong button.' })
  })
})
