/** The functions and keywords of PromQL that our expressions use; all other names are metrics or labels. */
const KEYWORDS = new Set([
  ...['sum', 'max', 'topk', 'rate', 'increase', 'histogram_quantile', 'by', 'and', 'offset', 'label_values']
])

/** A metric in an expression, with the labels that the expression uses. */
export interface Selector {
  readonly metric: string
  readonly labels: readonly string[]
}

/** All metrics of an expression. Both sides of an `or` are separate expressions. */
export const selectorsOf = (expression: string): Selector[] => expression.split(/\bor\b/).flatMap(selectorsOfOne)

/** `by (…)` applies to every metric of the expression; ours have only one. */
const selectorsOfOne = (expression: string): Selector[] => {
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/, */))
  const plain = expression
    .replaceAll(/\bby \([^)]*\)/g, '')
    .replaceAll(/\[[^\]]*\]/g, '')
    .replaceAll(/offset \w+/g, '')
  return [...plain.matchAll(/\b([a-z_][a-z0-9_]*)\b(?![="~!])(?:\{([^}]*)\})?/g)]
    .filter(([, name = '', matchers]) => matchers !== undefined || !KEYWORDS.has(name))
    .map(([, metric = '', matchers = '']) => ({
      metric,
      labels: [...grouped, ...[...matchers.matchAll(/(\w+)(?:=~|!=|!~|=)/g)].map(([, label = '']) => label)]
    }))
}
