import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'

const CELL_SENTENCES = 2
const CELL_LENGTH = 200
const PARAGRAPH_LINES = 5
/** A line of a page as it is shown: a source line may be longer. */
const LINE_LENGTH = 140
const README_LINES = 120

const pages = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((name) => join('docs', name))
  .concat('README.md')

const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8')

/** The text as a reader sees it: links without their targets. */
const shown = (text: string): string => text.replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').trim()

/** The lines of a page without code blocks and comments. */
const proseLines = (page: string): string[] =>
  page
    .replaceAll(/^( *)```.*\n[\s\S]*?^\1```$/gm, '')
    .replaceAll(/<!--[\s\S]*?-->/g, '')
    .split('\n')

const isTableRow = (line: string): boolean => /^\s*\|/.test(line)
const isListItem = (line: string): boolean => /^\s*(?:[-*]|\d+\.) /.test(line)

const longCells = (page: string): string[] =>
  proseLines(page)
    .filter(isTableRow)
    .flatMap((line) => line.split(/(?<!\\)\|/).map(shown))
    .filter((cell) => cell.length > CELL_LENGTH || cell.split(/[.!?] (?=[A-Z`*"])/).length > CELL_SENTENCES)

/** Paragraphs and items of lists, each as its source lines. */
const paragraphs = (page: string): string[][] => {
  const found: string[][] = [[]]
  for (const line of proseLines(page)) {
    const isBreak = line.trim() === '' || line.startsWith('#') || isTableRow(line)
    if (isBreak || isListItem(line)) found.push([])
    if (!isBreak) found.at(-1)?.push(line.trim())
  }
  return found
}

const longParagraphs = (page: string): string[] =>
  paragraphs(page)
    .filter((lines) => lines.length > PARAGRAPH_LINES || shown(lines.join(' ')).length > PARAGRAPH_LINES * LINE_LENGTH)
    .map((lines) => lines.join(' '))

t.test('a cell of a table has at most two short sentences', async (t) => {
  t.ok(pages.length > 50)
  for (const page of pages) t.same(longCells(read(page)), [], page)
})

t.test('a paragraph has at most five lines', async (t) => {
  for (const page of pages) t.same(longParagraphs(read(page)), [], page)
})

t.test('a page begins with its title and a paragraph', async (t) => {
  for (const page of pages) t.match(read(page), /^# .+\n\n(?!#|\||- |!|```)/, page)
})

t.test('the README has at most 120 lines', async (t) => {
  t.ok(read('README.md').split('\n').length <= README_LINES + 1)
})

t.test('a long cell and a long paragraph are found', async (t) => {
  const page = `| a. B. C | [b](${'x'.repeat(300)}) | ${'c'.repeat(201)} |\n\n${'d\n'.repeat(6)}\n- ${'e'.repeat(701)}\n- f\n`
  t.same(longCells(page), ['a. B. C', 'c'.repeat(201)])
  t.same(longParagraphs(page), ['d d d d d d', `- ${'e'.repeat(701)}`])
})
