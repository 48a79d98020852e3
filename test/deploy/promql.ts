/** Functions and words of PromQL that our expressions use; every other name in them is a metric or a label. */
const WORDS = new Set([
  ...['sum', 'max', 'topk', 'rate', 'increase', 'histogram_quantile', 'by', 'and', 'offset', 'label_values']
])

/** A metric in an expression, with the labels that are asked of it. */
export interface Selector {
  readonly metric: string
  readonly labels: readonly string[]
}

/** All metrics of an expression. Both sides of an `or` are expressions of their own. */
export const selectorsOf = (expression: string): Selector[] => expression.split(/\bor\b/).flatMap(selectorsOfOne)

/** `by (…)` belongs to every metric of its expression: all of ours have only one. */
const selectorsOfOne = (expression: string): Selector[] => {
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/, */))
  const plain = expression
    .replaceAll(/\bby \([^)]*\)/g, '')
    .replaceAll(/\[[^\]]*\]/g, '')
    .replaceAll(/offset \w+/g, '')
  return [...plain.matchAll(/\b([a-z_][a-z0-9_]*)\b(?![="~!])(?:\{([^}]*)\})?/g)]
    .filter(([, name = '', matchers]) => matchers !== undefined || !WORDS.has(name))
    .map(([, metric = '', matchers = '']) => ({
      metric,
      labels: [...grouped, ...[...matchers.matchAll(/(\w+)(?:=~|!=|!~|=)/g)].map(([, label = '']) => label)]
    }))
}
