import { endOfString } from '../shared/json-string.js'

/** The names and indices that lead from the root of a JSON text to a member. */
export type MemberPath = readonly (string | number)[]

/** An object or a list whose end has not been reached yet. */
interface Container {
  /** The names of an object so far; null for a list. */
  readonly names: Set<string> | null
  /** The name or the index of the current member. */
  member: string | number
  /** Whether the next string is the name of a member. */
  isBeforeName: boolean
}

/**
 * Members whose name occurs more than once in their object: `JSON.parse` uses the last one and ignores the others. Only for
 * valid JSON.
 */
export const duplicateNames = (json: string): MemberPath[] => {
  const duplicates: MemberPath[] = []
  const open: Container[] = []
  const tokens = /["{}[\],]/g
  for (let token = tokens.exec(json); token !== null; token = tokens.exec(json)) {
    const container = open.at(-1)
    switch (token[0]) {
      case '{':
        open.push({ names: new Set(), member: '', isBeforeName: true })
        break
      case '[':
        open.push({ names: null, member: 0, isBeforeName: false })
        break
      case ',':
        if (container !== undefined) startMember(container)
        break
      case '"': {
        const end = endOfString(json, tokens.lastIndex)
        if (container?.isBeforeName === true && !addName(container, JSON.parse(json.slice(token.index, end)))) {
          duplicates.push(open.map(({ member }) => member))
        }
        tokens.lastIndex = end
        break
      }
      default:
        open.pop()
    }
  }
  return duplicates
}

const startMember = (container: Container): void => {
  if (container.names === null) container.member = Number(container.member) + 1
  else container.isBeforeName = true
}

/** Returns false if the object has a member with this name already. */
const addName = (object: Container, name: string): boolean => {
  object.isBeforeName = false
  object.member = name
  const isNew = object.names?.has(name) === false
  object.names?.add(name)
  return isNew
}
