import { wordsOf } from '../field-words.js'
import type { Fields } from '../world.js'
import type { AuditEntry, Concerned, FieldChange } from './entry.js'
import { labelOf, switchedTo, valuesText } from './value-text.js'

/** The entry as a sentence: "Anna Berg changed the battery threshold from 20 % to 15 %." */
export const sentenceOf = (entry: AuditEntry): string => {
  const who = entry.userName ?? entry.account ?? 'Somebody who is not signed in'
  const details = entry.details ?? {}
  if (entry.result === 'denied') return `${who} was not permitted to ${deedOf(entry.action)}.`
  const text = SPECIAL[entry.action]?.(who, details, entry) ?? `${who} ${predicateOf(entry, details)}`
  return /[.!?]$/.test(text) ? text : `${text}.`
}

type Special = (who: string, details: Fields, entry: AuditEntry) => string

const textIn = (details: Fields, name: string): string => String(details[name] ?? '')

const namesIn = ({ people }: Fields): string => {
  const names = (Array.isArray(people) ? people : []).map(({ name }: Concerned) => name)
  if (names.length === 0) return 'somebody'
  if (names.length <= 3) return names.join(', ').replace(/, ([^,]*)$/, ' and $1')
  return `${names.slice(0, 2).join(', ')} and ${names.length - 2} others`
}

const areIn = ({ people }: Fields): string => (Array.isArray(people) && people.length > 1 ? 'are' : 'is')

/** Entries that routes write themselves, by their action. */
const SPECIAL: Readonly<Record<string, Special>> = {
  'auth.login': (who, { login }, { result }) =>
    result === 'done' ? `${who} signed in` : `The sign-in with the account “${login}” failed`,
  'page.error': (who, details) => `The web application of ${who} reported an error: ${textIn(details, 'message')}`,
  'phone-beacon.enroll': (_who, details) => `A phone was enrolled for ${textIn(details, 'subject') || 'a person'}`,
  'lookup.card': (who, details) => `${who} looked up where ${namesIn(details)} ${areIn(details)}`,
  'lookup.history': (who, details) => `${who} looked at the past positions of ${namesIn(details)}`,
  'lookup.search': (who, details) =>
    `${who} searched for “${textIn(details, 'search')}” and saw where ${namesIn(details)} ${areIn(details)}`,
  'lookup.floor': (who, details) => `${who} looked at the movements of everyone on ${textIn(details, 'subject')}`,
  'lookup.zone': (who, details) => `${who} looked at who was in ${textIn(details, 'subject')}`,
  'emergency.triggered': (who, details) => `${who} triggered the ${emergencyIn(details)}`,
  'emergency.active': (who, details) => `${who} triggered the ${emergencyIn(details)}`,
  'emergency.reported': (who, details) => `${who} reported the ${emergencyIn(details)}`,
  'emergency.changed': (who, details) => `${who} ${changed(`the ${emergencyIn(details)}`, changesIn(details))}`,
  'emergency.resolved': (who, details) =>
    [`${who} ended the ${emergencyIn(details)}`, textIn(details, 'message')].filter(Boolean).join(': '),
  'emergency.marked': (who, details) => `${who} recorded: ${textIn(details, 'message')}`,
  'emergency.unmarked': (who, details) => `${who} recorded: ${textIn(details, 'message')}`
}

const emergencyIn = (details: Fields): string => textIn(details, 'subject') || `emergency ${textIn(details, 'title')}`

const VERBS: Readonly<Record<string, readonly [past: string, infinitive: string]>> = {
  read: ['read', 'see'],
  create: ['added', 'add'],
  update: ['changed', 'change'],
  delete: ['deleted', 'delete'],
  export: ['exported', 'export'],
  trigger: ['triggered', 'trigger']
}

const NOUNS: Readonly<Record<string, string>> = {
  admin: 'users',
  audit: 'the audit log',
  battery: 'battery thresholds',
  emergency: 'emergencies',
  'phone-beacon': 'phones'
}

const nounOf = (resource: string): string => NOUNS[resource] ?? wordsOf(resource.replaceAll('-', ' '))

/** "change settings" for `settings.update`. */
const deedOf = (action: string): string => {
  const [resource = '', verb = ''] = action.split('.')
  if (action === 'admin.users') return 'manage users'
  const known = VERBS[verb]
  return known ? `${known[1]} ${nounOf(resource)}` : `use ${action}`
}

/** Write requests whose path says more than their permission. The placeholder is the subject. */
const DEEDS: readonly (readonly [RegExp, string])[] = [
  [/^POST .*\/reset-password$/, 'set a new password of …'],
  [/^POST .*\/unlock$/, 'unlocked …'],
  [/^POST .*\/photo$/, 'changed the photo of …'],
  [/^DELETE .*\/photo$/, 'removed the photo of …'],
  [/^POST .*\/upload$/, 'uploaded a plan of …'],
  [/^POST .*\/calibrate\/accept$/, 'calibrated the plan of …'],
  [/^POST .*\/calibrate$/, 'calculated a calibration of a plan'],
  [/^POST .*\/check-(in|out)$/, 'recorded: …'],
  [/^POST .*\/(import|imports\/\w+)$/, 'imported …'],
  [/^POST .*\/acknowledge$/, 'acknowledged …'],
  [/^POST .*\/bulk-activate$/, 'activated …'],
  [/^POST .*\/bulk-deactivate$/, 'deactivated …'],
  [/^POST .*\/assign$/, 'assigned …'],
  [/^POST .*\/channels$/, 'added …'],
  [/^DELETE .*\/channels\/[^/]+$/, 'deleted …'],
  [/^POST .*\/channels\/[^/]+\/test$/, 'sent a test to …'],
  [/^PUT .*\/buildings\/order$/, 'changed the order of the buildings'],
  [/^POST .*\/onboarding-token$/, 'created an onboarding token for a phone'],
  [/^POST .*\/sync-status$/, 'stored the state of gateways'],
  [/^POST .*\/weather\/refresh$/, 'requested the weather']
]

const predicateOf = ({ action, method, path }: AuditEntry, details: Fields): string => {
  const [resource = '', verb = ''] = action.split('.')
  const subject = textIn(details, 'subject') || nounOf(resource)
  const [, deed] = DEEDS.find(([request]) => request.test(`${method} ${path}`)) ?? []
  const changes = changesIn(details)
  const isChange = verb === 'update' || (action === 'admin.users' && method !== 'POST' && method !== 'DELETE')
  if (deed === undefined && isChange && changes.length > 0) return changed(subject, changes)
  const byMethod = method === 'DELETE' ? 'deleted' : method === 'POST' ? 'added' : 'changed'
  return deed?.replace('…', () => subject) ?? `${VERBS[verb]?.[0] ?? byMethod} ${subject}`
}

const changesIn = ({ changes }: Fields): readonly FieldChange[] => (Array.isArray(changes) ? changes : [])

const isSetting = ({ field }: FieldChange): boolean => field.includes('.')

const changed = (subject: string, changes: readonly FieldChange[]): string => {
  const [first] = changes
  if (first === undefined) return `changed ${subject}`
  if (changes.length > 1) return `changed ${subject}: ${changes.map(changeText).join('; ')}`
  const of = isSetting(first) ? '' : ` of ${subject}`
  const state = switchedTo(first)
  if (state !== null)
    return isSetting(first) ? `switched ${labelOf(first)} ${state}` : `changed ${subject}: ${changeText(first)}`
  return ['changed the', labelOf(first) + of, valuesText(first)].filter(Boolean).join(' ')
}

const changeText = (change: FieldChange): string => {
  const state = switchedTo(change)
  return `${labelOf(change)} ${state === null ? valuesText(change) || 'changed' : `switched ${state}`}`
}
