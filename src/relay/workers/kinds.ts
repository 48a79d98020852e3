/** What the processes of a relay say to each other. Both are the same program, so there is no version to agree on. */
export const KINDS = [
  'answer',
  'failure',
  // from a worker, about channels
  'subscribe',
  'unsubscribe',
  'publish',
  'publishToMany',
  'announce',
  'readHistory',
  'removeHistory',
  'addPresence',
  'removePresence',
  'readPresence',
  'countPresence',
  // to a worker, about channels that it has subscribed to
  'publication',
  'joinOrLeave',
  // from a worker, about all of them
  'joinFleet',
  'askFleet',
  'applyCommand',
  'askNode',
  'enter',
  'entered',
  'leave',
  'addUserConnection',
  'removeUserConnection',
  'readMetrics',
  // to a worker
  'fleetSize',
  'question',
  'ownMetrics',
  // about the process itself
  'begin',
  'listening',
  'failed',
  'configure',
  'ping',
  'stop'
] as const

export type Kind = (typeof KINDS)[number]

/** The number that stands for a kind in a frame. */
export const NUMBER_OF = Object.fromEntries(KINDS.map((kind, index) => [kind, index])) as Readonly<Record<Kind, number>>
