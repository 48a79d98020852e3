import { EnrollmentCompletionSchema, OnboardingTokenRequestSchema } from '../../../../schemas/phone-beacon.js'
import { defineRoutes, get, post, withSecretPath } from './declare.js'

export const phoneBeacon = defineRoutes({
  domain: 'phone beacon',
  about: 'Phones as beacons',
  rows: [
    withSecretPath(get('/api/phone-beacon/:token', 'Read an onboarding token')),
    post('/api/phone-beacon/onboarding-token', 'Create an onboarding token', OnboardingTokenRequestSchema),
    post('/api/phone-beacon/complete-enrollment', 'Complete an enrolment', EnrollmentCompletionSchema),
    get('/api/phone-beacon/irk-records', 'List the identity-resolving keys of enrolled phones')
  ]
})
