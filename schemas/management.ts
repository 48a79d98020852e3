import { type Static, Type } from '@sinclair/typebox'
import { anything, email, flag, integer, label, MAX_PROPERTIES, maybe, number, text, texts } from './field-kinds.js'
import { id } from './ids.js'

const beaconDetails = {
  name: maybe(text('The name of the beacon.')),
  macAddress: maybe(text('The hardware address.', 64)),
  uuid: maybe(text('The UUID that it sends.', 64)),
  major: maybe(integer(0, 65_535, 'The major number that it sends.')),
  minor: maybe(integer(0, 65_535, 'The minor number that it sends.')),
  type: maybe(text('The kind of beacon.', 64)),
  model: maybe(text('The make.')),
  serialNumber: maybe(text('The serial number.', 128)),
  txPower: maybe(number(-200, 100, 'The signal strength at one metre, in dBm.')),
  batteryLevel: maybe(number(0, 100, 'The charge of the battery, in percent.')),
  buildingId: maybe(id('The building that it is in.')),
  floorId: maybe(id('The floor that it is on.')),
  zoneId: maybe(id('The zone that it is in.')),
  personnelId: maybe(id('The person who carries it.')),
  status: maybe(text('Its state.', 64)),
  isActive: maybe(flag('Whether it is in use.')),
  metadata: maybe(anything('Anything else that belongs to the beacon.'))
}

export const BeaconCreateSchema = Type.Object(beaconDetails, {
  $id: 'BeaconCreate',
  title: 'New beacon',
  description: 'A beacon to create.',
  examples: [{ name: 'Badge 0042', macAddress: 'AC:23:3F:00:00:01', major: 1, minor: 42, metadata: {} }],
  additionalProperties: true,
  minProperties: 1,
  maxProperties: MAX_PROPERTIES
})
export type BeaconCreate = Static<typeof BeaconCreateSchema>

export const BeaconUpdateSchema = Type.Object(beaconDetails, {
  $id: 'BeaconUpdate',
  title: 'Changed beacon',
  description: 'What changes about a beacon.',
  examples: [{ isActive: false, metadata: {} }],
  additionalProperties: true,
  minProperties: 1,
  maxProperties: MAX_PROPERTIES
})
export type BeaconUpdate = Static<typeof BeaconUpdateSchema>

const departmentName = label('The name of the department.')

const departmentDetails = {
  code: maybe(text('A short name.', 64)),
  description: maybe(text('What the department does.', 2000)),
  parentId: maybe(id('The department that it is a part of.')),
  managerId: maybe(id('The person who leads it.')),
  buildingId: maybe(id('The building where it sits.')),
  email: maybe(email('Its e-mail address.')),
  phone: maybe(text('Its telephone number.', 64)),
  color: maybe(text('Its colour on the plan, as CSS writes it.', 64)),
  isActive: maybe(flag('Whether it is in use.'))
}

export const DepartmentCreateSchema = Type.Object(
  { name: departmentName, ...departmentDetails },
  {
    $id: 'DepartmentCreate',
    title: 'New department',
    description: 'A department to create.',
    examples: [{ name: 'Radiology', code: 'RAD', color: '#1565c0' }],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type DepartmentCreate = Static<typeof DepartmentCreateSchema>

export const DepartmentUpdateSchema = Type.Object(
  { name: Type.Optional(departmentName), ...departmentDetails },
  {
    $id: 'DepartmentUpdate',
    title: 'Changed department',
    description: 'What changes about a department.',
    examples: [{ managerId: 12 }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type DepartmentUpdate = Static<typeof DepartmentUpdateSchema>

const zoneTypeName = label('The name of the kind of zone.')

const zoneTypeDetails = {
  code: maybe(text('A short name.', 64)),
  description: maybe(text('What such zones are for.', 2000)),
  color: maybe(text('Their colour on the plan, as CSS writes it.', 64)),
  icon: maybe(text('Their sign on the plan.', 200)),
  displayOrder: maybe(integer(0, 1_000_000, 'The place in the list of kinds.')),
  isRestricted: maybe(flag('Whether only some people may enter such zones.')),
  isEmergency: maybe(flag('Whether such zones matter in an emergency.')),
  isActive: maybe(flag('Whether the kind is in use.'))
}

export const ZoneTypeCreateSchema = Type.Object(
  { name: zoneTypeName, ...zoneTypeDetails },
  {
    $id: 'ZoneTypeCreate',
    title: 'New kind of zone',
    description: 'A kind of zone to create.',
    examples: [{ name: 'Muster point', color: '#2e7d32', icon: 'flag', isEmergency: true }],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type ZoneTypeCreate = Static<typeof ZoneTypeCreateSchema>

export const ZoneTypeUpdateSchema = Type.Object(
  { name: Type.Optional(zoneTypeName), ...zoneTypeDetails },
  {
    $id: 'ZoneTypeUpdate',
    title: 'Changed kind of zone',
    description: 'What changes about a kind of zone.',
    examples: [{ color: '#c62828' }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type ZoneTypeUpdate = Static<typeof ZoneTypeUpdateSchema>

export const BleSettingsSchema = Type.Object(
  {
    scanIntervalMs: maybe(integer(0, 86_400_000, 'How often receivers report, in milliseconds.')),
    rssiThreshold: maybe(number(-200, 100, 'Weaker signals than this do not count, in dBm.')),
    txPower: maybe(number(-200, 100, 'The signal strength at one metre, in dBm, where a device does not say.')),
    pathLossExponent: maybe(number(0, 20, 'How fast signals fade.')),
    smoothingFactor: maybe(number(0, 1, 'How much a new reading counts against the ones before.')),
    minReceivers: maybe(integer(0, 1000, 'How many receivers must hear a device before it is placed.')),
    positionMethod: maybe(text('How positions are computed.', 64)),
    deviceTimeoutSeconds: maybe(integer(0, 31_536_000, 'After how many silent seconds a device is gone.')),
    ambientEnabled: maybe(flag('Whether devices that are not ours are looked at.'))
  },
  {
    $id: 'BleSettings',
    title: 'Radio settings',
    description: 'How signals become positions.',
    examples: [{ scanIntervalMs: 1000, rssiThreshold: -90, pathLossExponent: 2.4, minReceivers: 3 }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type BleSettings = Static<typeof BleSettingsSchema>

export const AlertSettingsSchema = Type.Object(
  {
    enabled: maybe(flag('Whether there are alerts at all.')),
    emailEnabled: maybe(flag('Whether they are sent by e-mail.')),
    smsEnabled: maybe(flag('Whether they are sent as text messages.')),
    pushEnabled: maybe(flag('Whether they are sent to browsers.')),
    soundEnabled: maybe(flag('Whether pages make a sound.')),
    recipients: maybe(texts('Who gets them.')),
    batteryLow: maybe(flag('Whether low batteries are told.')),
    zoneBreach: maybe(flag('Whether people in restricted zones are told.')),
    receiverOffline: maybe(flag('Whether silent receivers are told.')),
    offlineAfterMinutes: maybe(integer(0, 525_600, 'After how many silent minutes a receiver is told.')),
    cooldownMinutes: maybe(integer(0, 525_600, 'How long to wait before telling again, in minutes.'))
  },
  {
    $id: 'AlertSettings',
    title: 'Alert settings',
    description: 'Who is told what.',
    examples: [{ enabled: true, recipients: ['ada@example.com'], offlineAfterMinutes: 10, cooldownMinutes: 30 }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type AlertSettings = Static<typeof AlertSettingsSchema>

export const GeneralSettingsSchema = Type.Object(
  {
    organizationName: maybe(text('The name of the house.')),
    language: maybe(text('The language of the pages, such as de or en-GB.', 35)),
    timezone: maybe(text('The time zone, such as Europe/Berlin.', 64)),
    dateFormat: maybe(text('How dates are written.', 64)),
    units: maybe(text('In which units lengths are shown.', 32)),
    theme: maybe(text('How the pages look.', 32)),
    logoUrl: maybe(text('Where the logo is to be had.', 2048)),
    defaultBuildingId: maybe(id('The building that is shown first.')),
    sessionTimeoutMinutes: maybe(integer(5, 43_200, 'How long a session lasts, from signing in.')),
    dataRetentionDays: maybe(integer(0, 36_500, 'For how many days positions are kept.'))
  },
  {
    $id: 'GeneralSettings',
    title: 'General settings',
    description: 'What concerns the whole service.',
    examples: [{ organizationName: 'Example Clinic', language: 'en-GB', timezone: 'Europe/Berlin' }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type GeneralSettings = Static<typeof GeneralSettingsSchema>

// Each group as part of the whole, without the $id, which a validator must not meet twice.
export const SettingsSchema = Type.Object(
  {
    ble: maybe(
      Type.Object(BleSettingsSchema.properties, {
        additionalProperties: true,
        maxProperties: MAX_PROPERTIES,
        description: 'How signals become positions.'
      })
    ),
    alerts: maybe(
      Type.Object(AlertSettingsSchema.properties, {
        additionalProperties: true,
        maxProperties: MAX_PROPERTIES,
        description: 'Who is told what.'
      })
    ),
    general: maybe(
      Type.Object(GeneralSettingsSchema.properties, {
        additionalProperties: true,
        maxProperties: MAX_PROPERTIES,
        description: 'What concerns the whole service.'
      })
    )
  },
  {
    $id: 'Settings',
    title: 'Settings',
    description: 'The settings of the service, in groups.',
    examples: [
      {
        ble: { rssiThreshold: -90 },
        alerts: { enabled: true, recipients: ['ada@example.com'] },
        general: { language: 'de' }
      }
    ],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type Settings = Static<typeof SettingsSchema>
