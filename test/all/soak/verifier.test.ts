import t from 'tap'
import { required } from '../../helper/required.js'
import { type BatchPayload, batchOf, CHANNELS, type Entry, payloadOf, type SoakChannel } from './channels.js'
import { Journal, type JournalEntry } from './journal.js'
import { type Acknowledged, type Evidence, verify, violationText } from './verifier.js'

const channelNamed = (name: string): SoakChannel => required(CHANNELS.find((channel) => channel.name === name))

const SEQ = channelNamed('seq:0')
const SHORT = channelNamed('short:0')
const FLOOR = channelNamed('floor:0')
const CACHE = channelNamed('cache:0')
const LIVE = channelNamed('live:0')
const PUBLISHED = 30

const numbers = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

/** Publication n has offset n, in the epoch "first". */
const acknowledged = ({ name }: SoakChannel, epoch = 'first'): readonly Acknowledged[] =>
  numbers(1, PUBLISHED).map((n) => ({ channel: name, n, epoch, offset: n }))

/** A client that was subscribed before the first publication and received all of them. */
const complete = (channel: SoakChannel, client = 'client-1'): Journal => {
  const journal = new Journal(client, channel)
  journal.subscribed('first', 0, false, false)
  for (const n of numbers(1, PUBLISHED)) journal.received(n, payloadOf(channel, n))
  return journal
}

const evidenceOf = (journals: readonly Journal[], changes: Partial<Evidence> = {}): Evidence => {
  const channels = [...new Set(journals.map(({ channel }) => channel))]
  return {
    journals,
    acknowledged: channels.flatMap((channel) => acknowledged(channel)),
    ends: new Map(channels.map(({ name }) => [name, { epoch: 'first', offset: PUBLISHED }])),
    dataLosses: 0,
    ...changes
  }
}

const rulesBroken = (evidence: Evidence): readonly string[] => [
  ...new Set(verify(evidence).violations.map(({ rule }) => rule))
]

/** The journal after a change of what the relay delivered. */
const changed = (journal: Journal, change: (entries: JournalEntry[]) => void): Journal => {
  change(journal.entries)
  return journal
}

t.test('the verifier accepts complete journals of every kind of channel', async (t) => {
  const journals = [SEQ, SHORT, FLOOR, CACHE].map((channel) => complete(channel))
  const verdict = verify(evidenceOf(journals))
  t.same(verdict.violations, [])
  t.equal(verdict.deliveries, 4 * PUBLISHED)
})

const CHANGES: readonly {
  readonly title: string
  readonly rule: string
  change(entries: JournalEntry[]): void
}[] = [
  {
    title: 'a dropped delivery',
    rule: 'no publication is missing',
    change: (entries) => entries.splice(10, 1)
  },
  {
    title: 'a dropped last delivery',
    rule: 'every client receives the end of the stream',
    change: (entries) => entries.pop()
  },
  {
    title: 'a duplicated delivery',
    rule: 'publications arrive once and in order',
    change: (entries) => entries.splice(10, 0, required(entries[10]))
  },
  {
    title: 'two deliveries in the wrong order',
    rule: 'publications arrive once and in order',
    change: (entries) => entries.splice(10, 2, required(entries[11]), required(entries[10]))
  },
  {
    title: 'the data of another publication',
    rule: 'an offset of an epoch belongs to one publication',
    change: (entries) => Object.assign(required(entries[10]), { n: 11 })
  },
  {
    title: 'damaged data',
    rule: 'data arrives as it was published',
    change: (entries) => Object.assign(required(entries[10]), { isIntact: false })
  },
  {
    title: 'a publication before the reply to subscribe',
    rule: 'the reply to subscribe comes before the first publication',
    change: (entries) => entries.splice(0, 2, required(entries[1]), required(entries[0]))
  }
]

for (const { title, rule, change } of CHANGES) {
  t.test(`the verifier detects ${title}`, async (t) => {
    const journals = [complete(SEQ, 'client-1'), changed(complete(SEQ, 'client-2'), change)]
    const { violations } = verify(evidenceOf(journals))
    t.ok(
      violations.some((violation) => violation.rule === rule),
      rule
    )
    const [first] = violations
    t.equal(first?.subject, 'client-2')
    t.match(first === undefined ? '' : violationText(first), /client-2 on seq:0: expected .+, received .+/)
  })
}

t.test('the verifier accepts a recovery that delivers what was missed', async (t) => {
  const journal = changed(complete(SEQ), (entries) =>
    entries.splice(11, 0, { kind: 'subscribed', epoch: 'first', offset: 10, wasRecovering: true, recovered: true })
  )
  const verdict = verify(evidenceOf([journal]))
  t.same(verdict.violations, [])
  t.equal(verdict.recoveries, 1)
})

t.test('the verifier detects a gap after a recovery that claims success', async (t) => {
  const journal = changed(complete(SEQ), (entries) =>
    entries.splice(11, 3, { kind: 'subscribed', epoch: 'first', offset: 10, wasRecovering: true, recovered: true })
  )
  t.same(rulesBroken(evidenceOf([journal])), ['no publication is missing'])
})

/** A client that was away between the publications `last` and `next` and did not recover. */
const unrecovered = (channel: SoakChannel, last: number, next: number): Journal => {
  const journal = new Journal('client-1', channel)
  journal.subscribed('first', 0, false, false)
  for (const n of numbers(1, last)) journal.received(n, payloadOf(channel, n))
  journal.subscribed('first', next - 1, true, false)
  for (const n of numbers(next, PUBLISHED)) journal.received(n, payloadOf(channel, n))
  return journal
}

t.test('the verifier accepts a failed recovery of more publications than the history holds', async (t) => {
  const verdict = verify(evidenceOf([unrecovered(SHORT, 5, 5 + SHORT.historySize + 2)]))
  t.same(verdict.violations, [])
  t.equal(verdict.failedRecoveries, 1)
})

t.test('the verifier detects a failed recovery of publications that the history holds', async (t) => {
  t.same(rulesBroken(evidenceOf([unrecovered(SHORT, 5, 5 + SHORT.historySize + 1)])), [
    'a recovery succeeds while the history holds what was missed'
  ])
})

t.test('the verifier accepts a new epoch only after a loss of data', async (t) => {
  const journal = complete(SEQ)
  journal.subscribed('second', 0, true, false)
  for (const n of numbers(1, PUBLISHED)) journal.received(n, payloadOf(SEQ, n))
  const evidence = evidenceOf([journal], { ends: new Map([[SEQ.name, { epoch: 'second', offset: PUBLISHED }]]) })

  t.same(rulesBroken({ ...evidence, dataLosses: 1 }), [])
  t.same(rulesBroken(evidence), ['an epoch ends only when stored publications are lost'])
})

t.test('the verifier detects a publication that was made twice', async (t) => {
  const journal = complete(SEQ)
  journal.received(PUBLISHED + 1, payloadOf(SEQ, PUBLISHED))
  const evidence = evidenceOf([journal], { ends: new Map([[SEQ.name, { epoch: 'first', offset: PUBLISHED + 1 }]]) })
  t.same(rulesBroken(evidence), ['an idempotency key publishes once'])
})

t.test('the verifier detects a confirmed publication that is not in the stream', async (t) => {
  const lost = { channel: SEQ.name, n: PUBLISHED + 1, epoch: 'first', offset: PUBLISHED + 1 }
  const evidence = evidenceOf([complete(SEQ)], { acknowledged: [...acknowledged(SEQ), lost] })
  t.same(rulesBroken(evidence), ['a confirmed publication stays in the stream'])
})

/** What a slow reader receives for the publications `from` to `to`: the newest entry of every key. */
const merged = (from: number, to: number): BatchPayload => {
  const newest = new Map<string, Entry>()
  for (const n of numbers(from, to)) {
    for (const entry of batchOf(FLOOR, n).data) newest.set(entry.transmitterId, entry)
  }
  return { ...batchOf(FLOOR, to), data: [...newest.values()] }
}

/** A client that received the publications 11 to 20 as this one. */
const slowReader = (batch: BatchPayload): Journal => {
  const journal = new Journal('client-1', FLOOR)
  journal.subscribed('first', 0, false, false)
  for (const n of numbers(1, 10)) journal.received(n, payloadOf(FLOOR, n))
  journal.received(20, batch)
  for (const n of numbers(21, PUBLISHED)) journal.received(n, payloadOf(FLOOR, n))
  return journal
}

t.test('the verifier accepts merged publications on a conflated channel', async (t) => {
  t.same(verify(evidenceOf([slowReader(merged(11, 20))])).violations, [])
})

t.test('the verifier detects a merged publication without the newest entry of a key', async (t) => {
  const batch = merged(11, 20)
  const rule = 'a merged publication has the newest entry of every key'
  t.same(rulesBroken(evidenceOf([slowReader({ ...batch, data: batch.data.slice(1) })])), [rule])
  t.same(rulesBroken(evidenceOf([slowReader(batchOf(FLOOR, 20))])), [rule])
})

t.test('the verifier detects an entry that is older than the one before', async (t) => {
  // The key is not among those of the publications 29 and 30, so the merged list must not repeat an old entry of it.
  const journal = complete(FLOOR)
  const old = required(batchOf(FLOOR, 1).data[0])
  const last = batchOf(FLOOR, PUBLISHED)
  t.notOk(last.data.some(({ transmitterId }) => transmitterId === old.transmitterId))
  journal.entries.pop()
  journal.received(PUBLISHED, { ...last, data: [old, ...last.data] })
  t.same(rulesBroken(evidenceOf([journal])), ['an entry of a key is never older than the one before'])
})

t.test('the verifier lets a recovery skip to the newest publication in cache mode, and nothing else', async (t) => {
  const recovering = complete(CACHE)
  recovering.entries.splice(11, 5, {
    kind: 'subscribed',
    epoch: 'first',
    offset: 10,
    wasRecovering: true,
    recovered: true
  })
  t.same(verify(evidenceOf([recovering])).violations, [])

  const gap = changed(complete(CACHE), (entries) => entries.splice(11, 5))
  t.same(rulesBroken(evidenceOf([gap])), ['no publication is missing'])
})

t.test('the verifier demands order and uniqueness of channels without history', async (t) => {
  const journalOf = (...received: readonly number[]): Journal => {
    const journal = new Journal('client-1', LIVE)
    journal.subscribed('', 0, false, false)
    for (const n of received) journal.received(0, payloadOf(LIVE, n))
    return journal
  }
  const rules = (...received: readonly number[]): readonly string[] =>
    rulesBroken(evidenceOf([journalOf(...received)], { acknowledged: [], ends: new Map() }))

  t.same(rules(1, 2, 5, 6), [])
  t.same(rules(1, 2, 2), ['publications arrive once and in order'])
  t.same(rules(1, 3, 2), ['publications arrive once and in order'])
})
