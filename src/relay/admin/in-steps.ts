// Work on lists of a hundred thousand entries, done in pieces of a few milliseconds: clients are served in between.

const STEP = 2000

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

type Compare<Entry> = (left: Entry, right: Entry) => number

/** Sorted pieces first, which are then merged two by two. */
export const sortInSteps = async <Entry>(entries: readonly Entry[], compare: Compare<Entry>): Promise<Entry[]> => {
  let runs: Entry[][] = []
  for (let start = 0; start < entries.length; start += STEP) {
    runs.push(entries.slice(start, start + STEP).sort(compare))
    await nextTurn()
  }
  while (runs.length > 1) {
    const merged: Entry[][] = []
    for (let index = 0; index < runs.length; index += 2) {
      merged.push(await mergeInSteps(runs[index] ?? [], runs[index + 1] ?? [], compare))
    }
    runs = merged
  }
  return runs[0] ?? []
}

const mergeInSteps = async <Entry>(left: Entry[], right: Entry[], compare: Compare<Entry>): Promise<Entry[]> => {
  if (right.length === 0) return left
  const merged: Entry[] = []
  let [fromLeft, fromRight] = [0, 0]
  while (fromLeft < left.length || fromRight < right.length) {
    const [one, other] = [left[fromLeft], right[fromRight]]
    const takesLeft = other === undefined || (one !== undefined && compare(one, other) <= 0)
    merged.push((takesLeft ? one : other) as Entry)
    if (takesLeft) fromLeft++
    else fromRight++
    if (merged.length % STEP === 0) await nextTurn()
  }
  return merged
}
