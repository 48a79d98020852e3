import { redactedRedisUrl } from '../../shared/redis-address.js'

export const ENGINE_KINDS = ['memory', 'redis'] as const
export type EngineKind = (typeof ENGINE_KINDS)[number]

interface OptionsByKind {
  readonly memory: object
  readonly redis: RedisKindOptions
}

interface RedisKindOptions {
  readonly url: string
  /** Prefix of all keys and topics. */
  readonly prefix: string
  /** How long the presence of a crashed relay's clients remains. */
  readonly presenceTtlMs: number
}

/** The engine, with the options that only its kind has. */
export type EngineConfig<Kind extends EngineKind = EngineKind> = {
  readonly [Each in Kind]: { readonly kind: Each } & OptionsByKind[Each]
}[Kind]

interface EngineProperties<Kind extends EngineKind> {
  /**
   * With workers, the engine runs in the primary process and the workers use it; `PrimaryEngine` can do that for the memory
   * engine only. Otherwise each worker opens its own.
   */
  readonly runsInPrimary: Kind extends 'memory' ? boolean : false
  /** The address of the engine if a file selects it without one; undefined if it has no address. */
  readonly defaultAddress: string | undefined
  /** The options that need a restart, by their name in the file. */
  readonly restartOptions: (config: EngineConfig<Kind>) => Readonly<Record<string, unknown>>
  /** The options as operators may see them, without secrets. */
  readonly view: (config: EngineConfig<Kind>) => object
}

const ENGINES: { readonly [Kind in EngineKind]: EngineProperties<Kind> } = {
  memory: {
    runsInPrimary: true,
    defaultAddress: undefined,
    restartOptions: () => ({}),
    view: (config) => config
  },
  redis: {
    runsInPrimary: false,
    defaultAddress: 'redis://127.0.0.1:6379',
    restartOptions: ({ url, prefix, presenceTtlMs }) => ({
      'engine.redis.address': url,
      'engine.redis.prefix': prefix,
      'engine.redis.presence_ttl': presenceTtlMs
    }),
    view: (config) => ({ ...config, url: redactedRedisUrl(config.url) })
  }
}

export const runsInPrimary = ({ kind }: EngineConfig): boolean => ENGINES[kind].runsInPrimary

export const defaultAddress = (kind: EngineKind): string | undefined => ENGINES[kind].defaultAddress

export const restartOptions = <Kind extends EngineKind>(
  config: EngineConfig<Kind>
): Readonly<Record<string, unknown>> => ENGINES[config.kind].restartOptions(config)

export const engineView = <Kind extends EngineKind>(config: EngineConfig<Kind>): object =>
  ENGINES[config.kind].view(config)

/** The map broker of Centrifugo if the file selects none, which does not matter without maps. */
export const DEFAULT_MAP_BROKER: EngineKind = 'memory'

/** Sections of a file that have no switch and are not used. `engine` and `mapBroker` are the selected types, if any. */
export const unusedSections = (engine: unknown, mapBroker: unknown): ReadonlySet<string> => {
  const hasMapBroker = ENGINE_KINDS.some((kind) => kind === mapBroker && kind !== DEFAULT_MAP_BROKER)
  return new Set([
    ...ENGINE_KINDS.filter((kind) => kind !== engine).map((kind) => `engine.${kind}`),
    ...(hasMapBroker ? [] : ['map_broker'])
  ])
}
