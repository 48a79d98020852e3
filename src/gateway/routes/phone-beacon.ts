import { EnrollmentCompletionSchema, OnboardingTokenRequestSchema } from '../../../schemas/phone-beacon.js'
import { get, post, type RouteTable } from './declare.js'

export const phoneBeacon: RouteTable = {
  domain: 'phone beacon',
  about: 'Phones as beacons',
  rows: [
    get('/api/phone-beacon/:token', 'What an onboarding token is for'),
    post('/api/phone-beacon/onboarding-token', 'Make an onboarding token', OnboardingTokenRequestSchema),
    post('/api/phone-beacon/complete-enrollment', 'Finish an enrolment', EnrollmentCompletionSchema),
    get('/api/phone-beacon/irk-records', 'Identity-resolving keys of enrolled phones')
  ]
}
