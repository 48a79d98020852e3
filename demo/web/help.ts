// The page docs/how-to/use-the-demo.md: sections with a list of one line per entry, and emphasis.

export interface HelpSection {
  /** Such as `live-plan`. */
  readonly id: string
  readonly title: string
  readonly entries: readonly (readonly HelpText[])[]
}

export interface HelpText {
  readonly text: string
  readonly isEmphasis: boolean
}

/** "Live plan" becomes "live-plan". */
export const topicOf = (title: string): string => title.toLowerCase().replaceAll(' ', '-')

export const sectionsOf = (markdown: string): readonly HelpSection[] =>
  markdown
    .split(/^## /m)
    .slice(1)
    .map((part) => {
      const [title = '', ...lines] = part.split('\n')
      const entries = lines.filter((line) => line.startsWith('- ')).map((line) => textsOf(line.slice(2)))
      return { id: topicOf(title), title, entries }
    })

const textsOf = (line: string): readonly HelpText[] =>
  line.split('*').map((text, index) => ({ text, isEmphasis: index % 2 === 1 }))
