import type { Cluster } from '../core/engine.js'

/** Measures how long surveys and commands take that are sent to all nodes. */
export const measuredCluster = (
  cluster: Cluster,
  monotonicMs: () => number,
  surveyed: (op: string, seconds: number) => void
): Cluster => {
  const measure = async <T>(op: string, work: () => Promise<T>): Promise<T> => {
    const startedAt = monotonicMs()
    try {
      return await work()
    } finally {
      surveyed(op, (monotonicMs() - startedAt) / 1000)
    }
  }
  return {
    get size() {
      return cluster.size
    },
    start: (...args) => cluster.start(...args),
    survey: (survey, params) => measure(survey, () => cluster.survey(survey, params)),
    apply: (command, params) => measure(command, () => cluster.apply(command, params)),
    surveyNode: (node, survey, params) => cluster.surveyNode(node, survey, params),
    hasNode: (node) => cluster.hasNode(node),
    close: () => cluster.close()
  }
}
