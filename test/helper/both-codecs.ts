import { byteStreamFraming } from '../../src/relay/transport/framing.js'
import { frameOf, repliesIn } from './protobuf.js'
import type { Json } from './raw-client.js'
import { FakeSink, settled, type TestRelay } from './relay-core.js'

/** What a client received, and `3501 bad request` if it was closed. */
export interface Outcome {
  readonly replies: unknown
  readonly closed: string | null
}

/** JSON writes some fields even if they have their default value; protobuf never does. */
export const withoutDefaults = (value: unknown, isPayload = false): unknown => {
  if (isPayload || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((each) => withoutDefaults(each))
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, each]) => [name, withoutDefaults(each, name === 'data' || name.endsWith('_info'))] as const)
      .filter(([name, each]) => name === 'data' || !isDefault(name, each))
  )
}

const isDefault = (name: string, value: unknown): boolean =>
  value === 0 ||
  value === '' ||
  value === false ||
  (Array.isArray(value) && value.length === 0) ||
  (name === 'presence' && typeof value === 'object' && value !== null && Object.keys(value).length === 0)

/** Sends each frame of commands with a JSON client. */
export const runJson = async ({ client }: TestRelay, frames: Iterable<readonly Json[]>): Promise<Outcome> => {
  const tested = client()
  const replies: unknown[] = []
  for (const commands of frames) replies.push(...(await tested.send(...commands)))
  return { replies: withoutDefaults(replies), closed: tested.closed }
}

const withBytes = (command: Json): Json => {
  const { publish } = command
  if (typeof publish !== 'object' || publish === null || !('data' in publish)) return command
  return { ...command, publish: { ...publish, data: Buffer.from(JSON.stringify(publish.data)) } }
}

/** Sends each frame of commands with a protobuf client. Data is JSON. */
export const runProtobuf = async (relay: TestRelay, frames: Iterable<readonly Json[]>): Promise<Outcome> => {
  const sink = new FakeSink(false, byteStreamFraming)
  const connection = relay.relay.connect(sink)
  for (const commands of frames) {
    connection.handleFrame(frameOf(...commands.map(withBytes)))
    await settled()
    relay.endTurn()
  }
  const { closedWith } = sink
  return {
    replies: withoutDefaults(sink.frames.flatMap(repliesIn)),
    closed: closedWith === null ? null : `${closedWith.code} ${closedWith.reason}`
  }
}
