import { type Static, Type } from '@sinclair/typebox'
import { anything, email, flag, integer, MAX_PROPERTIES, maybe, moment, text } from './field-kinds.js'
import { id } from './ids.js'

export const OnboardingTokenRequestSchema = Type.Object(
  {
    personnelId: maybe(id('The person whose phone is enrolled.')),
    transmitterId: maybe(id('The transmitter that represents the phone.')),
    email: maybe(email('The e-mail address for the invitation.')),
    phone: maybe(text('The phone number for the invitation.', 64)),
    platform: maybe(text('The operating system of the phone.', 64)),
    expiresInMinutes: maybe(integer(1, 525_600, 'The lifetime of the token in minutes.')),
    notify: maybe(flag('Whether the person is notified.'))
  },
  {
    $id: 'OnboardingTokenRequest',
    title: 'Onboarding token',
    description: 'The person for whom to create a phone enrolment token.',
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
      Type.String({ minLength: 1, maxLength: 1024, description: 'The onboarding token of the person.' })
    ),
    irk: maybe(
      Type.String({
        minLength: 32,
        maxLength: 32,
        pattern: '^[0-9A-Fa-f]{32}$',
        description: 'The identity resolving key (IRK) of the phone: 32 hexadecimal digits.'
      })
    ),
    platform: maybe(text('The operating system of the phone.', 64)),
    deviceName: maybe(text("The owner's name for the phone.")),
    deviceModel: maybe(text('The phone model.')),
    osVersion: maybe(text('The version of the operating system.', 64)),
    appVersion: maybe(text('The version of the app.', 64)),
    identityAddress: maybe(text('The fixed hardware address behind the random ones.', 64)),
    enrolledAt: maybe(moment('The time of enrolment.')),
    metadata: maybe(anything('Anything else that belongs to the phone.'))
  },
  {
    $id: 'EnrollmentCompletion',
    title: 'Phone enrolment',
    description: 'The report of a phone at the end of its enrolment.',
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
