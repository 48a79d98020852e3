import { type Static, Type } from '@sinclair/typebox'
import { anything, email, flag, integer, label, MAX_PROPERTIES, maybe, number, text, texts } from './field-kinds.js'
import { id } from './ids.js'

const beaconDetails = {
  name: maybe(text('The name of the beacon.')),
  macAddress: maybe(text('The hardware address.', 64)),
  uuid: maybe(text('The UUID that the beacon broadcasts.', 64)),
  major: maybe(integer(0, 65_535, 'The major number that the beacon broadcasts.')),
  minor: maybe(integer(0, 65_535, 'The minor number that the beacon broadcasts.')),
  type: maybe(text('The kind of beacon.', 64)),
  model: maybe(text('The model.')),
  serialNumber: maybe(text('The serial number.', 128)),
  txPower: maybe(number(-200, 100, 'The signal strength at one metre, in dBm.')),
  batteryLevel: maybe(number(0, 100, 'The charge of the battery, in percent.')),
  buildingId: maybe(id('The building that it is in.')),
  floorId: maybe(id('The floor that it is on.')),
  zoneId: maybe(id('The zone that it is in.')),
  personnelId: maybe(id('The person who carries it.')),
  status: maybe(text('The status.', 64)),
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
  title: 'Beacon update',
  description: 'The fields of a beacon to change.',
  examples: [{ isActive: false, metadata: {} }],
  additionalProperties: true,
  minProperties: 1,
  maxProperties: MAX_PROPERTIES
})
export type BeaconUpdate = Static<typeof BeaconUpdateSchema>

const departmentName = label('The name of the department.')

const departmentDetails = {
  code: maybe(text('A short name.', 64)),
  description: maybe(text('The description of the department.', 2000)),
  parentId: maybe(id('The department that it is a part of.')),
  managerId: maybe(id('The person who leads it.')),
  buildingId: maybe(id('The building where the department is located.')),
  email: maybe(email('Its e-mail address.')),
  phone: maybe(text('Its phone number.', 64)),
  color: maybe(text('The colour on the plan as a CSS value.', 64)),
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
    title: 'Department update',
    description: 'The fields of a department to change.',
    examples: [{ managerId: 12 }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type DepartmentUpdate = Static<typeof DepartmentUpdateSchema>

const zoneTypeName = label('The name of the zone type.')

const zoneTypeDetails = {
  code: maybe(text('A short name.', 64)),
  description: maybe(text('The purpose of such zones.', 2000)),
  color: maybe(text('The colour on the plan as a CSS value.', 64)),
  icon: maybe(text('The icon on the plan.', 200)),
  displayOrder: maybe(integer(0, 1_000_000, 'The position in the list of zone types.')),
  isRestricted: maybe(flag('Whether access to such zones is restricted.')),
  isEmergency: maybe(flag('Whether such zones are relevant in an emergency.')),
  isActive: maybe(flag('Whether the zone type is in use.'))
}

export const ZoneTypeCreateSchema = Type.Object(
  { name: zoneTypeName, ...zoneTypeDetails },
  {
    $id: 'ZoneTypeCreate',
    title: 'New zone type',
    description: 'A zone type to create.',
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
    title: 'Zone type update',
    description: 'The fields of a zone type to change.',
    examples: [{ color: '#c62828' }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type ZoneTypeUpdate = Static<typeof ZoneTypeUpdateSchema>

export const BleSettingsSchema = Type.Object(
  {
    scanIntervalMs: maybe(integer(0, 86_400_000, 'The reporting interval of receivers in milliseconds.')),
    rssiThreshold: maybe(number(-200, 100, 'The weakest signal that is used, in dBm.')),
    txPower: maybe(number(-200, 100, 'The default signal strength at one metre, in dBm.')),
    pathLossExponent: maybe(number(0, 20, 'The path loss exponent of signals.')),
    smoothingFactor: maybe(number(0, 1, 'The weight of a new reading relative to earlier ones.')),
    minReceivers: maybe(integer(0, 1000, 'The minimum number of receivers needed to compute a position.')),
    positionMethod: maybe(text('The positioning method.', 64)),
    deviceTimeoutSeconds: maybe(integer(0, 31_536_000, 'Seconds without a signal after which a device is removed.')),
    ambientEnabled: maybe(flag('Whether ambient devices are evaluated.'))
  },
  {
    $id: 'BleSettings',
    title: 'Bluetooth settings',
    description: 'How positions are computed from signals.',
    examples: [{ scanIntervalMs: 1000, rssiThreshold: -90, pathLossExponent: 2.4, minReceivers: 3 }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type BleSettings = Static<typeof BleSettingsSchema>

export const AlertSettingsSchema = Type.Object(
  {
    enabled: maybe(flag('Enable alerts.')),
    emailEnabled: maybe(flag('Send alerts by e-mail.')),
    smsEnabled: maybe(flag('Send alerts as text messages.')),
    pushEnabled: maybe(flag('Send alerts to browsers.')),
    soundEnabled: maybe(flag('Play a sound.')),
    recipients: maybe(texts('The e-mail addresses that receive alerts.')),
    batteryLow: maybe(flag('Alert when a battery is low.')),
    zoneBreach: maybe(flag('Alert when a person enters a restricted zone.')),
    zoneOverCapacity: maybe(flag('Alert when a zone has more people than its capacity.')),
    receiverOffline: maybe(flag('Alert when a receiver goes offline.')),
    transmitterSilent: maybe(flag('Alert when a transmitter is silent.')),
    visitOverdue: maybe(flag('Alert when a visitor is on site after the expected end of the visit.')),
    offlineAfterMinutes: maybe(
      integer(0, 525_600, 'Minutes without a report after which a receiver counts as offline.')
    ),
    silentAfterMinutes: maybe(
      integer(0, 525_600, 'Minutes without a signal after which a transmitter counts as silent.')
    ),
    cooldownMinutes: maybe(integer(0, 525_600, 'Minutes to wait before the same alert is sent again.'))
  },
  {
    $id: 'AlertSettings',
    title: 'Alert settings',
    description: 'Which alerts are sent, and to whom.',
    examples: [{ enabled: true, recipients: ['ada@example.com'], offlineAfterMinutes: 10, cooldownMinutes: 30 }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type AlertSettings = Static<typeof AlertSettingsSchema>

export const GeneralSettingsSchema = Type.Object(
  {
    organizationName: maybe(text('The name of the organisation.')),
    language: maybe(text('The language of the web application, such as de or en-GB.', 35)),
    timezone: maybe(text('The time zone, such as Europe/Berlin.', 64)),
    dateFormat: maybe(text('The date format.', 64)),
    units: maybe(text('The unit of length.', 32)),
    theme: maybe(text('The theme of the web application.', 32)),
    logoUrl: maybe(text('The URL of the logo.', 2048)),
    defaultBuildingId: maybe(id('The building that is shown first.')),
    sessionTimeoutMinutes: maybe(integer(5, 43_200, 'The session lifetime after sign-in, in minutes.')),
    dataRetentionDays: maybe(integer(0, 36_500, 'Days for which positions are stored.'))
  },
  {
    $id: 'GeneralSettings',
    title: 'General settings',
    description: 'Settings of the whole service.',
    examples: [{ organizationName: 'Example Clinic', language: 'en-GB', timezone: 'Europe/Berlin' }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type GeneralSettings = Static<typeof GeneralSettingsSchema>

// Each group without its $id, because a validator rejects a duplicate $id.
export const SettingsSchema = Type.Object(
  {
    ble: maybe(
      Type.Object(BleSettingsSchema.properties, {
        additionalProperties: true,
        maxProperties: MAX_PROPERTIES,
        description: 'How positions are computed from signals.'
      })
    ),
    alerts: maybe(
      Type.Object(AlertSettingsSchema.properties, {
        additionalProperties: true,
        maxProperties: MAX_PROPERTIES,
        description: 'Which alerts are sent, and to whom.'
      })
    ),
    general: maybe(
      Type.Object(GeneralSettingsSchema.properties, {
        additionalProperties: true,
        maxProperties: MAX_PROPERTIES,
        description: 'Settings of the whole service.'
      })
    )
  },
  {
    $id: 'Settings',
    title: 'Settings',
    description: 'The settings of the service by group.',
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
