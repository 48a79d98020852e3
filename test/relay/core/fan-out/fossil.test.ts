import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import t from 'tap'
import { createDelta } from '../../../../src/relay/core/fan-out/fossil.js'
import { applyDelta } from '../../../helper/fossil.js'
import { checkProperty } from '../../../helper/property.js'

const appliedAsText = (base: Uint8Array, delta: Uint8Array): Buffer => applyDelta(base, Buffer.from(delta).toString())

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~'

/** A decoder for deltas that are not valid text. It checks everything that the format allows to check. */
const applied = (base: Uint8Array, delta: Uint8Array): Buffer => {
  let index = 0
  const number = (): number => {
    let value = 0
    for (;;) {
      const digit = DIGITS.indexOf(String.fromCharCode(delta[index] ?? 0))
      if (digit === -1) return value
      value = value * 64 + digit
      index += 1
    }
  }
  const sign = (): string => String.fromCharCode(delta[index++] ?? 0)

  const parts: Uint8Array[] = []
  const length = number()
  if (sign() !== '\n') throw new Error('no line break behind the length')
  for (;;) {
    const count = number()
    const command = sign()
    if (command === '@') {
      const from = number()
      if (sign() !== ',' || from + count > base.length) throw new Error('a copy from beyond the base')
      parts.push(base.subarray(from, from + count))
    } else if (command === ':') {
      parts.push(delta.subarray(index, index + count))
      index += count
    } else if (command === ';') {
      const result = Buffer.concat(parts)
      if (index !== delta.length) throw new Error('bytes after the end')
      if (result.length !== length || count !== checksum(result)) throw new Error('not what it says')
      return result
    } else throw new Error(`unknown command ${JSON.stringify(command)}`)
  }
}

const checksum = (bytes: Buffer): number => {
  const words = Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])
  let sum = 0
  for (let index = 0; index < words.length; index += 4) sum = (sum + words.readUInt32BE(index)) % 2 ** 32
  return sum
}

const batch = (moved: (index: number) => boolean): Buffer =>
  Buffer.from(
    JSON.stringify({
      type: 'position-batch',
      data: Array.from({ length: 20 }, (_, index) => ({
        transmitterId: `tx-${1000 + index}`,
        position: { x: index * 3.25 + (moved(index) ? 0.7 : 0), y: index * 1.5 },
        positionMethod: 'trilateration',
        floorId: 'floor-7'
      }))
    })
  )

const bytes = fc.uint8Array({ maxLength: 400 })

/** Two texts that share pieces, as publications do. */
const related = <T>(piece: fc.Arbitrary<T>, join: (pieces: readonly T[]) => Buffer) =>
  fc
    .array(piece, { minLength: 1, maxLength: 12 })
    .chain((pieces) =>
      fc.tuple(
        fc.constant(join(pieces)),
        fc.array(fc.oneof(fc.constantFrom(...pieces), piece), { maxLength: 16 }).map(join)
      )
    )
const relatedBytes = related(fc.uint8Array({ maxLength: 40 }), (pieces) => Buffer.concat(pieces))
// Few different bytes, so that most blocks match: the worst case for the hash table.
const repetitive = related(fc.uint8Array({ maxLength: 60, max: 1 }), (pieces) => Buffer.concat(pieces))
const continuation = related(fc.uint8Array({ maxLength: 60, min: 0x7f, max: 0x81 }), (pieces) => Buffer.concat(pieces))
const relatedTexts = related(fc.string({ unit: 'grapheme', maxLength: 20 }), (pieces) => Buffer.from(pieces.join('')))

t.test('a delta', async (t) => {
  for (const [name, pairs] of [
    ['any bytes', fc.tuple(bytes, bytes)],
    ['bytes with shared pieces', relatedBytes],
    ['bytes that repeat themselves', repetitive],
    ['bytes that are within characters', continuation],
    ['texts with shared pieces', relatedTexts]
  ] as const) {
    t.test(`a delta turns the base into the target: ${name}`, async (t) => {
      await checkProperty(
        t,
        fc.property(pairs, ([base, target]) => applied(base, createDelta(base, target)).equals(target)),
        { numRuns: 1000 }
      )
    })
  }

  t.test('a delta between texts is valid UTF-8', async (t) => {
    await checkProperty(
      t,
      fc.property(relatedTexts, ([base, target]) => isUtf8(createDelta(base, target))),
      { numRuns: 1000 }
    )
  })

  t.test('the official client can apply a delta', async (t) => {
    const values = fc.json({ maxDepth: 3 }).map((text) => Buffer.from(text))
    await checkProperty(
      t,
      fc.property(values, values, (base, target) => appliedAsText(base, createDelta(base, target)).equals(target)),
      { numRuns: 300 }
    )
  })

  t.test('a delta is never much longer than its target', async (t) => {
    await checkProperty(
      t,
      fc.property(relatedBytes, ([base, target]) => createDelta(base, target).length <= target.length + 24),
      { numRuns: 1000 }
    )
  })

  for (const [base, target] of [
    ['', ''],
    ['', 'abc'],
    ['a base that is long enough', ''],
    ['0123456789abcdef', '0123456789abcdef'],
    ['0123456789abcde', '0123456789abcdef']
  ] as const) {
    t.test(`the delta of ${JSON.stringify(base)} and ${JSON.stringify(target)} contains no copy`, async (t) => {
      t.equal(applied(Buffer.from(base), createDelta(Buffer.from(base), Buffer.from(target))).toString(), target)
    })
  }

  t.test('the delta of equal batches is one copy', async (t) => {
    const base = batch(() => false)

    t.match(Buffer.from(createDelta(base, base)).toString(), /^\w+\n\w+@0,[\w~]+;$/)
  })

  t.test('the delta of a batch with three of twenty entries changed is a tenth of its size', async (t) => {
    const base = batch(() => false)
    const target = batch((index) => index % 7 === 0)
    const delta = createDelta(base, target)

    t.ok(delta.length < target.length / 10, `${delta.length} of ${target.length} bytes`)
    t.ok(appliedAsText(base, delta).equals(target))
  })

  t.test('a delta does not split a character whose last byte differs', async (t) => {
    const [base, target] = ['ä', 'ö'].map((letter) => Buffer.from(`"${'a'.repeat(40)}${letter}${'b'.repeat(40)}"`))
    if (base === undefined || target === undefined) throw new Error('two texts')
    const delta = createDelta(base, target)

    t.ok(isUtf8(delta))
    t.ok(delta.length < 40, `${delta.length} bytes`)
    t.ok(appliedAsText(base, delta).equals(target))
  })

  t.test('the delta of a large repetitive base is created quickly', async (t) => {
    const base = Buffer.alloc(1 << 20, 'ab')
    const target = Buffer.concat([Buffer.alloc(1 << 19, 'ab'), Buffer.from('c'), Buffer.alloc(1 << 19, 'ab')])

    t.ok(applied(base, createDelta(base, target)).equals(target))
  })
})
