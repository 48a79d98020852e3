import type { RelayConfig } from '../config/config.js'
import { engineView } from '../config/engine-kinds.js'
import type { ProxyOptions } from '../config/proxy-options.js'
import type { ProxyConfig } from '../config/proxy-selection.js'
import type { TokenKeys } from '../config/token-options.js'
import type { ChannelOptions, ChannelRules, ClaimRules, ClientOptions, RpcRules } from '../core/options.js'

// The part of the configuration that operators may see. Only options listed here are shown, so a new option is hidden.

const HIDDEN = '(hidden)'

const SHOWN_CLIENT_OPTIONS = [
  'insecure',
  'allowAnonymousConnectWithoutToken',
  'disallowAnonymousConnectionTokens',
  'pingIntervalMs',
  'pongTimeoutMs',
  'staleCloseDelayMs',
  'expiredCloseDelayMs',
  'expiredSubCloseDelayMs',
  'queueMaxBytes',
  'channelLimit',
  'userConnectionLimit',
  'connectionLimit',
  'connectionsPerAddress',
  'connectionRateLimit',
  'commandsPerSecond',
  'commandLimits',
  'tokenInvalidation',
  'concurrency',
  'positionCheckDelayMs',
  'positionMaxTimeLagMs',
  'historyMaxPublicationLimit',
  'recoveryMaxPublicationLimit',
  'messageSizeLimit',
  'sseBodyBytes',
  'httpStreamBodyBytes',
  'emulationBodyBytes',
  'compression',
  'userSubscribeToPersonal',
  'personalChannelNamespace',
  'includeConnectionTime',
  'connectProxy',
  'refreshProxy'
] as const satisfies readonly (keyof ClientOptions)[]

const SHOWN_CHANNEL_OPTIONS = [
  'commandLimits',
  'presence',
  'joinLeave',
  'forcePushJoinLeave',
  'historySize',
  'historyTtlMs',
  'historyMetaTtlMs',
  'forceRecovery',
  'recoveryMode',
  'autoCacheRecover',
  'forcePositioning',
  'allowRecovery',
  'allowPositioning',
  'allowSubscribeForClient',
  'allowSubscribeForAnonymous',
  'allowPublishForClient',
  'allowPublishForSubscriber',
  'allowPublishForAnonymous',
  'allowPresenceForClient',
  'allowPresenceForSubscriber',
  'allowPresenceForAnonymous',
  'allowHistoryForClient',
  'allowHistoryForSubscriber',
  'allowHistoryForAnonymous',
  'allowedDeltaTypes',
  'deltaPublish',
  'allowUserLimitedChannels',
  'allowTagsFilter',
  'publicationDataFormat',
  'conflate',
  'entryTime',
  'snapshot',
  'allowMaxRate',
  'view',
  'subscriptionType',
  'map',
  'mapClientsPresencePrefix',
  'mapUsersPresencePrefix',
  'schema',
  'subscribeProxy',
  'publishProxy',
  'subRefreshProxy',
  'stateProxy',
  'stateEvents'
] as const satisfies readonly (keyof ChannelOptions)[]

const pick = <Source extends object>(source: Source, names: readonly (keyof Source)[]): object =>
  Object.fromEntries(names.map((name) => [name, source[name]]))

const channelView = (options: ChannelOptions) => ({
  ...pick(options, SHOWN_CHANNEL_OPTIONS),
  channelRegex: options.channelRegex?.source ?? null
})

const channelsView = (rules: ChannelRules) => ({
  namespaceBoundary: rules.namespaceBoundary,
  userBoundary: rules.userBoundary,
  userSeparator: rules.userSeparator,
  privatePrefix: rules.privatePrefix,
  maxLength: rules.maxLength,
  withoutNamespace: channelView(rules.withoutNamespace),
  namespaces: Object.fromEntries([...rules.namespaces].map(([name, options]) => [name, channelView(options)]))
})

const ruleText = (rule: ClaimRules['audience']): string | null =>
  rule === null || typeof rule === 'string' ? rule : `/${rule.source}/`

const tokenView = (keys: TokenKeys, rules: ClaimRules) => ({
  hmacSecret: keys.hmacSecret === null ? null : HIDDEN,
  previousHmacSecret: keys.previousHmacSecret === null ? null : HIDDEN,
  previousValidUntil: Number.isFinite(keys.previousValidUntilMs)
    ? new Date(keys.previousValidUntilMs).toISOString()
    : null,
  rsaPublicKey: keys.rsaPublicKey !== null,
  ecdsaPublicKey: keys.ecdsaPublicKey !== null,
  eddsaPublicKey: keys.eddsaPublicKey !== null,
  jwksEndpoint: keys.jwksEndpoint,
  expiryRequired: rules.expiryRequired,
  audience: ruleText(rules.audience),
  issuer: ruleText(rules.issuer),
  userIdClaim: rules.userIdClaim
})

/** Without the query of the address and the values of headers, which may be secrets. */
const proxyView = (proxy: ProxyOptions) => ({
  endpoint: `${proxy.origin}${proxy.path.replace(/\?.*/s, '?(hidden)')}`,
  timeoutMs: proxy.timeoutMs,
  httpHeaders: proxy.httpHeaders,
  emulatedHeaders: proxy.emulatedHeaders,
  staticHeaders: [...proxy.staticHeaders.keys()],
  binaryEncoding: proxy.binaryEncoding,
  includeMeta: proxy.includeMeta,
  statusTransforms: Object.fromEntries(proxy.statusTransforms),
  tls:
    proxy.tls === null
      ? null
      : {
          ca: proxy.tls.ca !== null,
          cert: proxy.tls.cert !== null,
          serverName: proxy.tls.serverName,
          isVerified: proxy.tls.isVerified
        },
  maxInFlight: proxy.maxInFlight,
  maxQueue: proxy.maxQueue,
  maxResponseBytes: proxy.maxResponseBytes,
  isSigned: proxy.signingSecrets.length > 0
})

/** The proxies in use by event and name. */
const proxiesView = ({ events }: ProxyConfig) =>
  Object.fromEntries(
    Object.entries(events).map(([event, byName]) => [
      event,
      Object.fromEntries([...byName].map(([name, proxy]) => [name, proxyView(proxy)]))
    ])
  )

const rpcView = ({ withoutNamespace, namespaces, namespaceBoundary, pingMethod }: RpcRules) => ({
  pingMethod,
  withoutNamespace,
  namespaces: Object.fromEntries(namespaces),
  namespaceBoundary
})

export const configView = (config: RelayConfig) => ({
  listen: config.listen,
  internalListen: config.internalListen,
  allowedOrigins: config.allowedOrigins,
  client: {
    ...pick(config.client, SHOWN_CLIENT_OPTIONS),
    token: tokenView(config.tokens.connection, config.client.token),
    subscriptionToken: tokenView(config.tokens.subscription, config.client.subscriptionToken)
  },
  channels: channelsView(config.channels),
  rpc: rpcView(config.rpc),
  proxies: proxiesView(config.proxies),
  api: {
    key: HIDDEN,
    previousKey: config.api.previousKey === null ? null : HIDDEN,
    maxBodyBytes: config.api.maxBodyBytes,
    insecure: config.api.insecure,
    errorMode: config.api.errorMode,
    isExternal: config.api.isExternal
  },
  unidirectional: config.unidirectional,
  endpoints: config.endpoints,
  trustedProxies: config.trustedProxies,
  metricsAllow: config.metricsAllow,
  metrics: config.metrics,
  adminPassword: HIDDEN,
  isAdminExternal: config.isAdminExternal,
  engine: engineView(config.engine),
  vacatedDelayMs: config.vacatedDelayMs,
  workers: config.workers,
  nodeName: config.nodeName,
  logLevel: config.logLevel,
  logFile: config.logFile,
  shutdownMs: config.shutdownMs,
  shutdownDelayMs: config.shutdownDelayMs,
  warmsUp: config.warmsUp
})
