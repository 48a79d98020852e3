import { endOfString } from './json-string.js'

/**
 * Valid JSON without the member at this path, also if it occurs several times. No other byte changes: serialising it again would
 * round large numbers.
 */
export const withoutMember = (json: string, [name, ...rest]: readonly string[]): string => {
  if (!/^\s*\{/.test(json)) return json
  const [start, end] = [json.indexOf('{') + 1, json.lastIndexOf('}')]
  const members = membersIn(json, start, end).flatMap((member) => {
    const nameStart = member.indexOf('"')
    const nameEnd = endOfString(member, nameStart + 1)
    // An empty object has one member without a name.
    if (nameStart === -1 || JSON.parse(member.slice(nameStart, nameEnd)) !== name) return [member]
    if (rest.length === 0) return []
    const valueStart = member.indexOf(':', nameEnd) + 1
    return [member.slice(0, valueStart) + withoutMember(member.slice(valueStart), rest)]
  })
  return json.slice(0, start) + members.join(',') + json.slice(end)
}

/** The texts between the commas of an object whose content is between these indices. */
const membersIn = (json: string, start: number, end: number): string[] => {
  const members: string[] = []
  let depth = 0
  let first = start
  for (let index = start; index < end; index += 1) {
    const character = json[index]
    if (character === '"') index = endOfString(json, index + 1) - 1
    else if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') depth -= 1
    else if (character === ',' && depth === 0) {
      members.push(json.slice(first, index))
      first = index + 1
    }
  }
  return [...members, json.slice(first, end)]
}
