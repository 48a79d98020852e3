/** An instruction of a Dockerfile, with continuation lines joined and without comments. */
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

/** The instructions of the last stage, which defines the image. */
export const lastStage = (dockerfile: string): Instruction[] => {
  const instructions = instructionsOf(dockerfile)
  return instructions.slice(instructions.findLastIndex(({ name }) => name === 'FROM'))
}

export const textsOf = (instructions: readonly Instruction[], wanted: string): string[] =>
  instructions.filter(({ name }) => name === wanted).map(({ text }) => text)

/** The variables of the `ENV` instructions. */
export const environmentOf = (instructions: readonly Instruction[]): Record<string, string> =>
  Object.fromEntries(
    textsOf(instructions, 'ENV').flatMap((text) =>
      text.split(/\s+/).map((pair): [string, string] => {
        const [name = '', value = ''] = pair.split('=', 2)
        return [name, value]
      })
    )
  )
