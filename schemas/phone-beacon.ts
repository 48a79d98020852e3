import { type Static, Type } from '@sinclair/typebox'
import { anything, email, flag, integer, MAX_PROPERTIES, maybe, moment, text } from './field-kinds.js'
import { id } from './ids.js'

export const OnboardingTokenRequestSchema = Type.Object(
  {
    personnelId: maybe(id('The person whose telephone is to be enrolled.')),
    transmitterId: maybe(id('The transmitter that the telephone stands for.')),
    email: maybe(email('Where the invitation goes.')),
    phone: maybe(text('The number that the invitation goes to.', 64)),
    platform: maybe(text('The system of the telephone.', 64)),
    expiresInMinutes: maybe(integer(1, 525_600, 'How long the token may be used, in minutes.')),
    notify: maybe(flag('Whether the person gets a message.'))
  },
  {
    $id: 'OnboardingTokenRequest',
    title: 'Onboarding token',
    description: 'For whom to make a token that enrols a telephone.',
    examples: [{ personnelId: 12, email: 'ada@example.com', expiresInMinutes: 60, notify: true }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type OnboardingTokenRequest = Static<typeof OnboardingTokenRequestSchema>

export const EnrollmentCompletionSchema = Type.Object(
  {
    token: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1024, description: 'The onboarding token that the person was given.' })
    ),
    irk: maybe(
      Type.String({
        minLength: 32,
        maxLength: 32,
        pattern: '^[0-9A-Fa-f]{32}$',
        description: 'The identity-resolving key of the telephone: 32 hexadecimal digits.'
      })
    ),
    platform: maybe(text('The system of the telephone.', 64)),
    deviceName: maybe(text('What its owner calls the telephone.')),
    deviceModel: maybe(text('The make of the telephone.')),
    osVersion: maybe(text('The version of its system.', 64)),
    appVersion: maybe(text('The version of the app on it.', 64)),
    identityAddress: maybe(text('The fixed hardware address behind the changing ones.', 64)),
    enrolledAt: maybe(moment('When it was enrolled.')),
    metadata: maybe(anything('Anything else that belongs to the telephone.'))
  },
  {
    $id: 'EnrollmentCompletion',
    title: 'Enrolled telephone',
    description: 'What a telephone reports at the end of its enrolment.',
    examples: [
      {
        token: 'b7Jq0c4mV2',
        irk: '00112233445566778899aabbccddeeff',
        platform: 'ios',
        deviceName: 'Ada’s phone',
        metadata: {}
      }
    ],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type EnrollmentCompletion = Static<typeof EnrollmentCompletionSchema>
