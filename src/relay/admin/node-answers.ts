import type { Answer } from '../core/fleet.js'
import type { AdminParts } from './admin.js'
import type { Attempts } from './attempts.js'
import { nodeChannels } from './channel-rows.js'
import { nodeConnections } from './connection-rows.js'
import { nodeCounts } from './figures.js'
import type { Gatherer } from './gatherer.js'
import { LoopDelay } from './loop-delay.js'
import './questions.js'
import { RowSource } from './row-source.js'
import type { Sessions } from './sessions.js'
import { nodeSymptoms } from './symptoms.js'

export interface AdminAnswersParts
  extends Pick<AdminParts, 'relay' | 'nodeName' | 'totals' | 'troubles' | 'isEngineConnected'> {
  readonly sessions: Sessions
  readonly attempts: Attempts
  readonly gatherer: Gatherer
}

const SAME_SECOND_MS = 500

/** What this node tells the pages of all nodes. Nothing is measured or kept before somebody asks. */
export const adminAnswers = (parts: AdminAnswersParts) => {
  const { relay, nodeName, totals, sessions, attempts, gatherer } = parts
  const { context, answers } = relay
  const startedAt = context.monotonicMs()
  const delay = new LoopDelay()
  const channels = new RowSource((search) => nodeChannels(context, search), context.monotonicMs)
  const connections = new RowSource((search) => nodeConnections(context, nodeName, search), context.monotonicMs)
  let figures: Answer<'adminFigures'> | null = null
  answers.set('adminFigures', () => {
    // Operators at several nodes ask for the same second.
    if (figures !== null && context.monotonicMs() - figures.counts.atMs < SAME_SECOND_MS) return figures
    figures = {
      counts: nodeCounts(relay, nodeName, totals(), delay),
      symptoms: nodeSymptoms({ ...parts, startedAt })
    }
    return figures
  })
  answers.set('adminFrames', () => gatherer.frames())
  answers.set('adminChannels', (wanted) => channels.chunk(wanted))
  answers.set('adminConnections', (wanted) => connections.chunk(wanted))
  answers.set('adminSession', (news) => {
    sessions.hear(news)
    return null
  })
  answers.set('adminAttempt', ({ node, attempt }) => {
    if (node !== context.node) attempts.count(attempt)
    return null
  })
  return {
    close: () => {
      delay.stop()
      channels.close()
      connections.close()
    }
  }
}
