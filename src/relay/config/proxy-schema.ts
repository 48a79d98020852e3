import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { count, duration, flag, section, text } from './schema-kinds.js'

// The options of a proxy: a backend that the relay asks about events. They are the same at every place of the file that has one.

const MAX_RESPONSE_BYTES = 64 * 1024 * 1024
const MAX_REQUESTS = 100_000
const MAX_PEM_CHARACTERS = 1_048_576

const names = (description: string) =>
  Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { description, default: [] }))

const pem = (description: string) =>
  text(`${description}: PEM text, the same in base64, or the path of a PEM file.`, MAX_PEM_CHARACTERS)

const transform = Type.Object(
  {
    status_code: count('The status of the response.', 1, 999),
    to_error: section('The client receives this error.', {
      code: count('Code of the error, from 400 to 1999.'),
      message: text('Text of the error, ASCII.', 1024),
      temporary: flag('The client may try again.')
    }),
    to_disconnect: section('The client is disconnected.', {
      code: count('4000 to 4499: the client reconnects; 4500 to 4999: it does not.'),
      reason: text('Text of the close frame, ASCII.', 1024)
    })
  },
  { additionalProperties: false }
)

export const proxyOptions = {
  endpoint: text('Address of the backend with http:// or https://, used as written, with its query.', 2048),
  timeout: duration(
    'Time for one request, from its wait for a connection to the last byte of the response; 1h at most.',
    '1s'
  ),
  http_headers: names("Headers of the client's HTTP request that are sent to the backend, such as Cookie."),
  emulated_headers: names(
    'Headers that a browser cannot set, taken from the headers of the connect command. A client can send any value.'
  ),
  binary_encoding: flag('Send the data of a client as base64, in b64data.'),
  include_connection_meta: flag('Send the meta that the backend attached to the connection.'),
  http: section('HTTP.', {
    static_headers: Type.Optional(
      Type.Record(Type.String(), Type.String(), { description: 'Headers of each request.', default: {} })
    ),
    status_to_code_transforms: Type.Optional(
      Type.Array(transform, {
        description:
          'What a client receives for a status other than 200: {"status_code", "to_error": {"code", "message", "temporary"}} or {"status_code", "to_disconnect": {"code", "reason"}}. Without an entry: error 100.',
        default: []
      })
    ),
    tls: section('TLS of an https:// endpoint.', {
      enabled: flag(
        'Use these options. Without them, the certificate is verified with the root certificates of Node.js.'
      ),
      server_ca_pem: pem('Certificates that the certificate of the backend is verified with'),
      cert_pem: pem('Certificate of the relay'),
      key_pem: pem('Private key of cert_pem'),
      server_name: text('The name in the certificate, if it is not the one of the endpoint.', 253),
      insecure_skip_verify: flag('Accept any certificate. Only for tests.')
    }),
    max_response_size: count('Gatehouse only: maximum size of a response, in bytes.', 1, MAX_RESPONSE_BYTES, 1_048_576),
    signing_secret: text('Gatehouse only: signs each request, in the header X-Gatehouse-Signature.'),
    signing_secret_previous: text(
      'Gatehouse only: the secret that is being replaced; requests have a second signature with it.'
    )
  }),
  max_inflight: count(
    'Gatehouse only: maximum requests under way at the same time, and connections, per process.',
    1,
    MAX_REQUESTS,
    128
  ),
  max_queue: count(
    'Gatehouse only: maximum requests that wait, per process. Beyond it, clients receive error 111 at once.',
    0,
    MAX_REQUESTS,
    1024
  )
} as const satisfies Record<string, TSchema>

const ProxySchema = Type.Object(proxyOptions)
export type FileProxy = Static<typeof ProxySchema>

/** An option that selects a proxy. */
export const proxyReference = (fallback: string) =>
  text(`The proxy: the name of one of proxies, or default for ${fallback}.`, 1024, 'default')
