/** Samples of one name, as they stand in the text format of Prometheus. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: string
  /** By name and labels. */
  readonly samples: ReadonlyMap<string, number>
}

const HELP = '# HELP '
const TYPE = '# TYPE '

/** Reads what a process of this relay has written. */
export const parseMetrics = (text: string): readonly Family[] => {
  const families: { name: string; help: string; type: string; samples: Map<string, number> }[] = []
  for (const line of text.split('\n')) {
    if (line.startsWith(HELP)) {
      const [name, help] = nameAndRest(line.slice(HELP.length))
      families.push({ name, help, type: 'untyped', samples: new Map() })
      continue
    }
    const family = families[families.length - 1]
    if (family === undefined || line === '') continue
    if (line.startsWith(TYPE)) [, family.type] = nameAndRest(line.slice(TYPE.length))
    else if (!line.startsWith('#')) {
      // Labels may hold spaces; the value is behind the last one.
      const space = line.lastIndexOf(' ')
      family.samples.set(line.slice(0, space), Number(line.slice(space + 1)))
    }
  }
  return families
}

export const metricsText = (families: Iterable<Family>): string =>
  [...families]
    .map(({ name, help, type, samples }) => {
      const lines = [...samples].map(([sample, value]) => `${sample} ${value}\n`)
      return `${HELP}${name} ${help}\n${TYPE}${name} ${type}\n${lines.join('')}\n`
    })
    .join('')

const nameAndRest = (text: string): [name: string, rest: string] => {
  const space = text.indexOf(' ')
  return space === -1 ? [text, ''] : [text.slice(0, space), text.slice(space + 1)]
}
