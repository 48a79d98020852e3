import type { Span, Tracer } from '../../shared/tracing.js'
import { ReplyError } from '../core/codes.js'
import type { TracedDelivery } from '../core/fan-out/hub.js'
import type { MaybePromise } from '../core/maybe-promise.js'
import type { NewPublication } from '../core/publication.js'
import type { ApiResult } from './reply.js'

// The spans of a publication: the call of the engine, and the fan-out at every process with subscribers.

/**
 * Publishes within a span of its own. The publication carries the span to its deliveries. `parent` is the span of the API
 * request; null if the request is not traced.
 */
export const tracePublish = <Written extends Pick<NewPublication, 'trace'>>(
  parent: Span | null,
  publication: Written,
  channels: string | readonly string[],
  publish: (publication: Written) => MaybePromise<ApiResult>
): MaybePromise<ApiResult> => {
  if (parent === null || !parent.isSampled) return publish(publication)
  const span = parent.startChild('publish', {
    kind: 'producer',
    attributes: {
      'messaging.system': 'gatehouse',
      'messaging.operation.type': 'send',
      ...(typeof channels === 'string'
        ? { 'messaging.destination.name': channels }
        : { 'messaging.batch.message_count': channels.length })
    }
  })
  const finish = (result: ApiResult): ApiResult => {
    if (result instanceof ReplyError) span.end(String(result.code))
    else span.end()
    return result
  }
  const fail = (error: unknown): never => {
    span.end(error instanceof Error ? error.name : 'error')
    throw error
  }
  try {
    const result = publish({ ...publication, trace: span.traceparent })
    return result instanceof Promise ? result.then(finish, fail) : finish(result)
  } catch (error) {
    return fail(error)
  }
}

/** Records the span of a fan-out, as a child of the publication's span. */
export const deliverySpans =
  (tracer: Tracer) =>
  ({ trace, channel, namespace, subscribers, receivedAt }: TracedDelivery): void => {
    const attributes = {
      'messaging.system': 'gatehouse',
      'messaging.operation.type': 'process',
      'messaging.destination.name': channel,
      'gatehouse.subscribers': subscribers
    }
    const options = { kind: 'consumer', startedAt: receivedAt, attributes } as const
    tracer.startSpan(`deliver ${namespace}`, { traceparent: trace }, options).end()
  }
