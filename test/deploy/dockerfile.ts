/** A Dockerfile's instructions, lines that go on put together, comments left out. */
export interface Instruction {
  readonly name: string
  readonly text: string
}

export const instructionsOf = (dockerfile: string): Instruction[] =>
  dockerfile
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [name = ''] = line.split(' ', 1)
      return { name, text: line.slice(name.length).trim() }
    })

/** The instructions of the last stage: what is in the image, and how it is run. */
export const lastStage = (dockerfile: string): Instruction[] => {
  const instructions = instructionsOf(dockerfile)
  return instructions.slice(instructions.findLastIndex(({ name }) => name === 'FROM'))
}

export const textsOf = (instructions: readonly Instruction[], wanted: string): string[] =>
  instructions.filter(({ name }) => name === wanted).map(({ text }) => text)

/** What `ENV` sets. */
export const environmentOf = (instructions: readonly Instruction[]): Record<string, string> =>
  Object.fromEntries(
    textsOf(instructions, 'ENV').flatMap((text) =>
      text.split(/\s+/).map((pair): [string, string] => {
        const [name = '', value = ''] = pair.split('=', 2)
        return [name, value]
      })
    )
  )
