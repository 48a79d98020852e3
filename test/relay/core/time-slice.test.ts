import t from 'tap'
import { joinInSlices, TimeSlice, TurnQueue } from '../../../src/relay/core/time-slice.js'

t.test('the commas between many short texts count for the maximum length of the joined text', async (t) => {
  const join = (maxLength: number) => joinInSlices(Array(1000).fill(1), String, new TimeSlice(() => 0), maxLength)

  t.equal((await join(2000))?.length, 1999)
  t.equal(await join(1500), null)
})

t.test('the next slice lasts as long as the first one', async (t) => {
  let nowMs = 0
  const slice = new TimeSlice(() => nowMs)
  const ends = async () => {
    const start = nowMs
    nowMs = start + 9
    t.equal(slice.isOver, false)
    nowMs = start + 10
    t.equal(slice.isOver, true)
    await slice.next()
  }
  await ends()
  await ends()
})

t.test('a task that adds itself again runs once in each turn', async (t) => {
  const turns: (() => void)[] = []
  const queue = new TurnQueue(
    (task) => turns.push(task),
    () => 0
  )
  let runs = 0
  const task = (): void => {
    runs += 1
    if (runs < 3) queue.push(task)
  }
  queue.push(task)
  for (const expected of [1, 2, 3]) {
    t.equal(turns.length, 1)
    turns.shift()?.()
    t.equal(runs, expected)
  }
  t.equal(turns.length, 0)
})
