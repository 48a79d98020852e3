import type { Cluster } from '../core/engine.js'
import type { RelayMetrics } from './relay-metrics.js'

/** Counts surveys, and measures how long surveys and commands take that are sent to all nodes. */
export const measuredCluster = (
  cluster: Cluster,
  monotonicMs: () => number,
  metrics: Pick<RelayMetrics, 'surveyed' | 'engineAction'>
): Cluster => {
  const measure = async <T>(op: string, work: () => Promise<T>): Promise<T> => {
    const startedAt = monotonicMs()
    try {
      return await work()
    } finally {
      metrics.surveyed(op, (monotonicMs() - startedAt) / 1000)
    }
  }
  return {
    get size() {
      return cluster.size
    },
    start: (...args) => cluster.start(...args),
    survey: (survey, params) => {
      metrics.engineAction('survey', '')
      return measure(survey, () => cluster.survey(survey, params))
    },
    apply: (command, params) => measure(command, () => cluster.apply(command, params)),
    surveyNode: (node, survey, params) => {
      metrics.engineAction('survey', '')
      return cluster.surveyNode(node, survey, params)
    },
    hasNode: (node) => cluster.hasNode(node),
    close: () => cluster.close()
  }
}
