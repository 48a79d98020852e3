import { isObject } from '../../../shared/is-object.js'
import { type PreviousEntry, type Publication, REMOVED_DATA } from '../publication.js'

/** Tags of a publication by name. */
export type Tags = Readonly<Record<string, unknown>>

export const NO_TAGS: Tags = Object.freeze({})

/** The tags of a publication, which are JSON text, as an object. */
export const tagsOf = ({ tags }: Pick<Publication, 'tags'>): Tags => {
  if (tags === null) return NO_TAGS
  const parsed: unknown = JSON.parse(tags)
  return isObject(parsed) ? parsed : NO_TAGS
}

/** Selects publications by their tags. It saves bandwidth; it is not an access control. */
export interface TagFilter {
  /** Equal for equal filters, so that their subscribers share a group. */
  readonly text: string
  matches(tags: Tags): boolean
}

/** Whether a subscriber with this filter receives the publication. */
export const passes = (filter: TagFilter | null, publication: PreviousEntry): boolean =>
  filter === null || filter.matches(tagsOf(publication))

/**
 * The publication as a subscriber with this filter receives it: unchanged, null, or a removal if the entry of a map matched
 * before.
 */
export const selected = (filter: TagFilter | null, publication: Publication): Publication | null => {
  if (passes(filter, publication)) return publication
  const { previous } = publication
  return previous !== undefined && passes(filter, previous) ? removalBy(publication) : null
}

/** The removal of an entry that a subscriber no longer receives. It has the position of the change. */
export const removalBy = ({ offset, time, key }: Publication): Publication => ({
  data: REMOVED_DATA,
  offset,
  info: null,
  tags: null,
  time,
  delta: false,
  version: 0,
  ...(key === undefined ? {} : { key }),
  removed: true
})

/**
 * The same for consecutive changes of a map. It is unknown whether an entry matched before its first change here, so the
 * subscriber may receive the removal of a key that it does not have.
 */
export const selectedChanges = (filter: TagFilter | null, changes: readonly Publication[]): readonly Publication[] => {
  if (filter === null) return changes
  const absent = new Set<string | undefined>()
  return changes.flatMap((change) => {
    const { key, removed } = change
    const isSelected = passes(filter, change)
    if (!isSelected && (removed || absent.has(key))) return []
    if (isSelected && !removed) absent.delete(key)
    else absent.add(key)
    return [isSelected ? change : removalBy(change)]
  })
}

type Test = (tags: Tags) => boolean

/** A filter is evaluated for every publication, so its size is limited. */
const MAX_NODES = 100
const MAX_VALUES = 1000

/** Parses the `tf` field of a subscribe command; null if it is invalid or too large. */
export const parseTagFilter = (node: unknown): TagFilter | null => {
  const budget: Budget = { nodes: MAX_NODES, values: MAX_VALUES }
  const parsed = parseNode(node, budget)
  return parsed === null ? null : { text: JSON.stringify(parsed.canonical), matches: parsed.test }
}

/** The nodes and values that a filter may still have. The number of nodes bounds its depth too. */
interface Budget {
  nodes: number
  values: number
}

interface ParsedNode {
  readonly test: Test
  /** The node without fields that have no effect. */
  readonly canonical: unknown
}

const parseNode = (node: unknown, budget: Budget): ParsedNode | null => {
  if (!isObject(node) || --budget.nodes < 0) return null
  const { op = '', nodes = [] } = node
  if (op === '') return parseComparison(node, budget)
  if (!Array.isArray(nodes)) return null
  const children: ParsedNode[] = []
  for (const each of nodes) {
    const child = parseNode(each, budget)
    if (child === null) return null
    children.push(child)
  }
  const test = combine(op, children)
  return test === null ? null : { test, canonical: [op, children.map(({ canonical }) => canonical)] }
}

const combine = (op: unknown, children: readonly ParsedNode[]): Test | null => {
  const [first] = children
  if (first === undefined) return null
  switch (op) {
    case 'and':
      return (tags) => children.every(({ test }) => test(tags))
    case 'or':
      return (tags) => children.some(({ test }) => test(tags))
    case 'not':
      return children.length === 1 ? (tags) => !first.test(tags) : null
    default:
      return null
  }
}

const parseComparison = (
  { key, cmp, val = '', vals = [] }: Readonly<Record<string, unknown>>,
  budget: Budget
): ParsedNode | null => {
  if (typeof key !== 'string' || key === '' || typeof cmp !== 'string' || typeof val !== 'string') return null
  if (!Array.isArray(vals) || !vals.every((each): each is string => typeof each === 'string')) return null
  budget.values -= vals.length
  if (budget.values < 0 || !hasItsOperands(cmp, val, vals)) return null
  const test = comparison(cmp, val, vals)
  if (test === null) return null
  return {
    // A tag that the publication does not have is undefined.
    test: (tags) => test(Object.hasOwn(tags, key) && typeof tags[key] === 'string' ? tags[key] : undefined),
    canonical: [cmp, key, val, ...vals]
  }
}

/** Lists are compared with `vals`, the existence of a tag with nothing, and everything else with `val`. */
const hasItsOperands = (cmp: string, val: string, vals: readonly string[]): boolean => {
  const takesList = cmp === 'in' || cmp === 'nin'
  const takesValue = !takesList && cmp !== 'ex' && cmp !== 'nex'
  return (val !== '') === takesValue && vals.length > 0 === takesList
}

type ValueTest = (tag: string | undefined) => boolean

const comparison = (cmp: string, val: string, vals: readonly string[]): ValueTest | null => {
  switch (cmp) {
    case 'eq':
      return (tag) => tag === val
    case 'neq':
      return (tag) => tag !== val
    case 'in':
    case 'nin': {
      const set = new Set<string | undefined>(vals)
      return cmp === 'in' ? (tag) => set.has(tag) : (tag) => !set.has(tag)
    }
    case 'ex':
      return (tag) => tag !== undefined
    case 'nex':
      return (tag) => tag === undefined
    case 'sw':
      return (tag) => tag?.startsWith(val) === true
    case 'ew':
      return (tag) => tag?.endsWith(val) === true
    case 'ct':
      return (tag) => tag?.includes(val) === true
    default:
      return numberComparison(cmp, val)
  }
}

const NUMBER_COMPARISONS: Readonly<Record<string, (left: number, right: number) => boolean>> = {
  gt: (left, right) => left > right,
  gte: (left, right) => left >= right,
  lt: (left, right) => left < right,
  lte: (left, right) => left <= right
}

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/

/** A tag that is not a number does not match, and nothing matches a value that is not a number. */
const numberComparison = (cmp: string, val: string): ValueTest | null => {
  const compare = Object.hasOwn(NUMBER_COMPARISONS, cmp) ? NUMBER_COMPARISONS[cmp] : undefined
  if (compare === undefined) return null
  if (!DECIMAL.test(val)) return () => false
  const right = Number(val)
  return (tag) => tag !== undefined && DECIMAL.test(tag) && compare(Number(tag), right)
}
