import { type Static, Type } from '@sinclair/typebox'
import { email, flag, label, MAX_PROPERTIES, number } from './field-kinds.js'

// The backend opens a session for an e-mail address alone when these fields are present, because it trusts the server
// that signed the person in elsewhere. From a browser they would be a sign-in without a password.
const serverOnly = () =>
  Type.Optional(Type.Never({ description: 'Not allowed here: only the server may send this field.' }))

export const LoginSchema = Type.Object(
  {
    email: Type.Optional(
      label('The e-mail address of the account, or another login name that the backend accepts.', 254)
    ),
    username: Type.Optional(label('The user name of the account, if it has one.', 254)),
    password: Type.String({ minLength: 1, maxLength: 1024, description: 'The password.' }),
    rememberMe: Type.Optional(flag('Requests a longer session.')),
    okta: serverOnly(),
    groups: serverOnly()
  },
  {
    $id: 'Login',
    title: 'Sign in',
    description: 'The credentials of a user. Other fields are rejected unless `LOGIN_REQUEST_FIELDS` names them.',
    examples: [{ email: 'ada@example.com', password: 'correct horse battery staple', rememberMe: true }],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type Login = Static<typeof LoginSchema>

export const SessionExchangeSchema = Type.Object(
  {
    email: email('The e-mail address confirmed by the identity provider.'),
    name: Type.String({ maxLength: 200, description: 'The name of the person.' }),
    okta: Type.Literal(true, {
      description: 'Marks the exchange: the user was authenticated by the identity provider.'
    }),
    groups: Type.Array(Type.String({ maxLength: 256 }), {
      maxItems: 1000,
      description: 'The groups of the person at the identity provider.'
    })
  },
  {
    $id: 'SessionExchange',
    title: 'Session exchange',
    description: 'The request of the gateway to the backend that exchanges a provider session for an app session.',
    examples: [{ email: 'ada@example.com', name: 'Ada Example', okta: true, groups: ['floor-wardens'] }],
    additionalProperties: false
  }
)
export type SessionExchange = Static<typeof SessionExchangeSchema>

export const SessionResponseSchema = Type.Object(
  {
    success: flag('Whether there is a session.'),
    data: Type.Optional(
      Type.Union(
        [
          Type.Object(
            {
              // Browsers receive responses without it.
              token: Type.Optional(Type.String({ minLength: 1, maxLength: 8192, description: 'The app token.' })),
              // Not validated further: a field with an unexpected type must not make the login fail.
              user: Type.Object(
                {},
                { additionalProperties: true, maxProperties: MAX_PROPERTIES, description: 'The person signed in.' }
              ),
              expiresIn: Type.Optional(number(0, Number.MAX_SAFE_INTEGER, 'The lifetime of the token in seconds.'))
            },
            { additionalProperties: true, maxProperties: MAX_PROPERTIES }
          ),
          Type.Null()
        ],
        { description: 'The session, if there is one.' }
      )
    )
  },
  {
    $id: 'SessionResponse',
    title: 'Session',
    description: 'The response of the backend to a login or an exchange.',
    examples: [
      {
        success: true,
        data: {
          token: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3IiwiZXhwIjoxNzYzMjAwMDAwfQ.c2lnbmF0dXJl',
          user: {
            userId: 7,
            email: 'ada@example.com',
            displayName: 'Ada Example',
            role: 'admin',
            permissions: ['personnel.read', 'emergency.trigger']
          },
          expiresIn: 3600
        }
      },
      { success: false }
    ],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type SessionResponse = Static<typeof SessionResponseSchema>
