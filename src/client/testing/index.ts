// The public API of `gatehouse-client/testing`: a gateway and a relay in memory.

export type { FakeUser } from './fake-cookies.js'
export {
  createFakeGateway,
  type FakeGateway,
  type FakeGatewayOptions,
  type FakeGatewayRequest
} from './fake-gateway.js'
export type { FakeHandler, FakeRequest } from './fake-http.js'
export type { FakeChannelOptions } from './fake-relay.js'
export { FakeRpcError, type FakeRpcHandler } from './relay-session.js'
