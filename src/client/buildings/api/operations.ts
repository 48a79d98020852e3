// Written by `npm run client-api` from the gateway's route tables, not by hand.
import { ActionNoteSchema } from '../../../../schemas/action-note.js'
import { AssetCreateSchema, AssetUpdateSchema } from '../../../../schemas/assets.js'
import { LoginSchema } from '../../../../schemas/auth.js'
import { BatteryThresholdsSchema } from '../../../../schemas/battery.js'
import { BuildingCreateSchema, BuildingOrderSchema, BuildingUpdateSchema } from '../../../../schemas/buildings.js'
import {
  EmergencyContactCreateSchema,
  EmergencyContactUpdateSchema,
  EmergencyCreateSchema,
  EmergencyTriggerSchema,
  EmergencyUpdateSchema
} from '../../../../schemas/emergency.js'
import { ErrorReportSchema } from '../../../../schemas/error-report.js'
import {
  FloorCalibrationAcceptSchema,
  FloorCalibrationSchema,
  FloorCreateSchema,
  FloorUpdateSchema
} from '../../../../schemas/floors.js'
import { GatewaySyncStatusSchema } from '../../../../schemas/gateways.js'
import {
  AlertSettingsSchema,
  BeaconCreateSchema,
  BeaconUpdateSchema,
  BleSettingsSchema,
  DepartmentCreateSchema,
  DepartmentUpdateSchema,
  GeneralSettingsSchema,
  SettingsSchema,
  ZoneTypeCreateSchema,
  ZoneTypeUpdateSchema
} from '../../../../schemas/management.js'
import {
  PersonnelBatchDeleteSchema,
  PersonnelBulkSchema,
  PersonnelCreateSchema,
  PersonnelUpdateSchema
} from '../../../../schemas/personnel.js'
import { EnrollmentCompletionSchema, OnboardingTokenRequestSchema } from '../../../../schemas/phone-beacon.js'
import { NegotiateRequestSchema } from '../../../../schemas/realtime.js'
import { ReceiverBulkSchema, ReceiverCreateSchema, ReceiverUpdateSchema } from '../../../../schemas/receivers.js'
import {
  TransmitterAssignSchema,
  TransmitterBulkSchema,
  TransmitterCreateSchema,
  TransmitterPatchSchema,
  TransmitterUpdateSchema
} from '../../../../schemas/transmitters.js'
import { PasswordResetSchema, UserCreateSchema, UserUpdateSchema } from '../../../../schemas/users.js'
import { WeatherSeveritySettingsSchema } from '../../../../schemas/weather.js'
import { ZoneCreateSchema, ZoneUpdateSchema } from '../../../../schemas/zones.js'
import type { Calls } from './calls.js'

export const operations = (calls: Calls) => ({
  auth: {
    /** Sign in: `POST /api/auth/login`. */
    login: calls.send('POST', '/api/auth/login', LoginSchema),
    /** Sign out: `POST /api/auth/logout`. */
    logout: calls.sendMaybe('POST', '/api/auth/logout', ActionNoteSchema),
    /** Sign in at the backend: `POST /api/auth/backend-login`. */
    backendLogin: calls.send('POST', '/api/auth/backend-login', LoginSchema),
    /** Read the signed-in user from the backend: `GET /api/auth/backend-me`. */
    backendMe: calls.read('/api/auth/backend-me'),
    /** Get a CSRF token, as a cookie and in the body: `GET /api/auth/csrf-token`. */
    csrfToken: calls.read('/api/auth/csrf-token'),
    /** List the identity providers: `GET /api/auth/providers`. */
    providers: calls.read('/api/auth/providers')
  },
  users: {
    /** List users: `GET /api/users`. */
    list: calls.read('/api/users'),
    /** Create a user: `POST /api/users`. */
    create: calls.send('POST', '/api/users', UserCreateSchema),
    /** Change a user: `PUT /api/users/:id`. */
    update: calls.sendTo('PUT', '/api/users/:id', UserUpdateSchema),
    /** Delete a user: `DELETE /api/users/:id`. */
    delete: calls.sendToMaybe('DELETE', '/api/users/:id', ActionNoteSchema),
    /** Reset a password: `POST /api/users/:id/reset-password`. */
    resetPassword: calls.sendToMaybe('POST', '/api/users/:id/reset-password', PasswordResetSchema),
    /** Unlock an account: `POST /api/users/:id/unlock`. */
    unlock: calls.sendToMaybe('POST', '/api/users/:id/unlock', ActionNoteSchema),
    /** List roles: `GET /api/users/roles`. */
    roles: calls.read('/api/users/roles')
  },
  buildings: {
    /** List buildings: `GET /api/buildings`. */
    list: calls.read('/api/buildings'),
    /** Create a building: `POST /api/buildings`. */
    create: calls.send('POST', '/api/buildings', BuildingCreateSchema),
    /** Read one building: `GET /api/buildings/:id`. */
    read: calls.readOne('/api/buildings/:id'),
    /** Change a building: `PUT /api/buildings/:id`. */
    update: calls.sendTo('PUT', '/api/buildings/:id', BuildingUpdateSchema),
    /** Delete a building: `DELETE /api/buildings/:id`. */
    delete: calls.sendToMaybe('DELETE', '/api/buildings/:id', ActionNoteSchema),
    /** Change the order of buildings: `PUT /api/buildings/order`. */
    order: calls.send('PUT', '/api/buildings/order', BuildingOrderSchema),
    /** Read the health of the gateways in each building: `GET /api/buildings/gateway-health`. */
    gatewayHealth: calls.read('/api/buildings/gateway-health')
  },
  floors: {
    /** Create a floor: `POST /api/floors`. */
    create: calls.send('POST', '/api/floors', FloorCreateSchema),
    /** Change a floor: `PUT /api/floors/:id`. */
    update: calls.sendTo('PUT', '/api/floors/:id', FloorUpdateSchema),
    /** Delete a floor: `DELETE /api/floors/:id`. */
    delete: calls.sendToMaybe('DELETE', '/api/floors/:id', ActionNoteSchema),
    /** Upload a floor plan: `POST /api/floors/:floorId/upload`. */
    upload: calls.uploadTo('/api/floors/:floorId/upload'),
    /** Calculate a calibration: `POST /api/floors/:floorId/calibrate`. */
    calibrate: Object.assign(calls.sendTo('POST', '/api/floors/:floorId/calibrate', FloorCalibrationSchema), {
      /** Accept a calibration: `POST /api/floors/:floorId/calibrate/accept`. */
      accept: calls.sendTo('POST', '/api/floors/:floorId/calibrate/accept', FloorCalibrationAcceptSchema)
    })
  },
  zones: {
    /** List zones: `GET /api/zones`. */
    list: calls.read('/api/zones'),
    /** Create a zone: `POST /api/zones`. */
    create: calls.send('POST', '/api/zones', ZoneCreateSchema),
    /** Read one zone: `GET /api/zones/:id`. */
    read: calls.readOne('/api/zones/:id'),
    /** Change a zone: `PUT /api/zones/:id`. */
    update: calls.sendTo('PUT', '/api/zones/:id', ZoneUpdateSchema),
    /** Delete a zone: `DELETE /api/zones/:id`. */
    delete: calls.sendToMaybe('DELETE', '/api/zones/:id', ActionNoteSchema),
    /** List emergency zones: `GET /api/zones/emergency`. */
    emergency: calls.read('/api/zones/emergency')
  },
  receivers: {
    /** List receivers: `GET /api/receivers`. */
    list: calls.read('/api/receivers'),
    /** Create a receiver: `POST /api/receivers`. */
    create: calls.send('POST', '/api/receivers', ReceiverCreateSchema),
    /** Read one receiver: `GET /api/receivers/:id`. */
    read: calls.readOne('/api/receivers/:id'),
    /** Change a receiver: `PUT /api/receivers/:id`. */
    update: calls.sendTo('PUT', '/api/receivers/:id', ReceiverUpdateSchema),
    /** Delete a receiver: `DELETE /api/receivers/:id`. */
    delete: calls.sendToMaybe('DELETE', '/api/receivers/:id', ActionNoteSchema),
    /** Create or change many receivers: `POST /api/receivers/bulk`. */
    bulk: calls.send('POST', '/api/receivers/bulk', ReceiverBulkSchema),
    /** List unregistered receivers: `GET /api/receivers/discover`. */
    discover: calls.read('/api/receivers/discover')
  },
  personnel: {
    /** List personnel: `GET /api/personnel`. */
    list: calls.read('/api/personnel'),
    /** Create a person: `POST /api/personnel`. */
    create: calls.send('POST', '/api/personnel', PersonnelCreateSchema),
    /** Change a person: `PUT /api/personnel/:id`. */
    update: calls.sendTo('PUT', '/api/personnel/:id', PersonnelUpdateSchema),
    /** Delete a person: `DELETE /api/personnel/:id`. */
    delete: calls.sendToMaybe('DELETE', '/api/personnel/:id', ActionNoteSchema),
    photo: {
      /** Upload a photo: `POST /api/personnel/:id/photo`. */
      upload: calls.uploadTo('/api/personnel/:id/photo'),
      /** Delete a photo: `DELETE /api/personnel/:id/photo`. */
      delete: calls.sendToMaybe('DELETE', '/api/personnel/:id/photo', ActionNoteSchema)
    },
    /** List the beacons of a person: `GET /api/personnel/:id/beacons`. */
    beacons: calls.readOne('/api/personnel/:id/beacons'),
    export: {
      /** Export personnel as CSV: `GET /api/personnel/export/csv`. */
      csv: calls.download('/api/personnel/export/csv'),
      /** Export personnel as PDF: `GET /api/personnel/export/pdf`. */
      pdf: calls.download('/api/personnel/export/pdf')
    },
    /** Import personnel from CSV: `POST /api/personnel/import`. */
    import: calls.upload('/api/personnel/import'),
    /** Delete many people: `POST /api/personnel/batch-delete`. */
    batchDelete: calls.send('POST', '/api/personnel/batch-delete', PersonnelBatchDeleteSchema),
    /** Activate many people: `POST /api/personnel/bulk-activate`. */
    bulkActivate: calls.send('POST', '/api/personnel/bulk-activate', PersonnelBulkSchema),
    /** Deactivate many people: `POST /api/personnel/bulk-deactivate`. */
    bulkDeactivate: calls.send('POST', '/api/personnel/bulk-deactivate', PersonnelBulkSchema)
  },
  assets: {
    /** List assets: `GET /api/assets`. */
    list: calls.read('/api/assets'),
    /** Create an asset: `POST /api/assets`. */
    create: calls.send('POST', '/api/assets', AssetCreateSchema),
    /** Read one asset: `GET /api/assets/:id`. */
    read: calls.readOne('/api/assets/:id'),
    /** Change an asset: `PUT /api/assets/:id`. */
    update: calls.sendTo('PUT', '/api/assets/:id', AssetUpdateSchema),
    /** Delete an asset: `DELETE /api/assets/:id`. */
    delete: calls.sendToMaybe('DELETE', '/api/assets/:id', ActionNoteSchema),
    /** List the past positions of an asset: `GET /api/assets/:id/history`. */
    history: calls.readOne('/api/assets/:id/history')
  },
  emergency: {
    /** List emergencies: `GET /api/emergency`. */
    list: calls.read('/api/emergency'),
    /** Create an emergency: `POST /api/emergency`. */
    create: calls.send('POST', '/api/emergency', EmergencyCreateSchema),
    /** Read one emergency: `GET /api/emergency/:id`. */
    read: calls.readOne('/api/emergency/:id'),
    /** Change an emergency: `PUT /api/emergency/:id`. */
    update: calls.sendTo('PUT', '/api/emergency/:id', EmergencyUpdateSchema),
    /** Trigger an emergency: `POST /api/emergency/trigger`. */
    trigger: calls.send('POST', '/api/emergency/trigger', EmergencyTriggerSchema),
    /** Read the active emergency: `GET /api/emergency/active`. */
    active: calls.read('/api/emergency/active'),
    /** List emergency events: `GET /api/emergency/events`. */
    events: calls.read('/api/emergency/events'),
    /** Read the muster status of personnel: `GET /api/emergency/muster`. */
    muster: calls.read('/api/emergency/muster'),
    contacts: {
      /** List emergency contacts: `GET /api/emergency/contacts`. */
      list: calls.read('/api/emergency/contacts'),
      /** Create an emergency contact: `POST /api/emergency/contacts`. */
      create: calls.send('POST', '/api/emergency/contacts', EmergencyContactCreateSchema),
      /** Change an emergency contact: `PUT /api/emergency/contacts/:contactId`. */
      update: calls.sendTo('PUT', '/api/emergency/contacts/:contactId', EmergencyContactUpdateSchema),
      /** Delete an emergency contact: `DELETE /api/emergency/contacts/:contactId`. */
      delete: calls.sendToMaybe('DELETE', '/api/emergency/contacts/:contactId', ActionNoteSchema)
    }
  },
  dashboard: {
    /** Read the whole dashboard: `GET /api/dashboard`. */
    read: calls.read('/api/dashboard'),
    /** Read the summary figures: `GET /api/dashboard/summary`. */
    summary: calls.read('/api/dashboard/summary'),
    /** Read the figures by building: `GET /api/dashboard/buildings`. */
    buildings: calls.read('/api/dashboard/buildings'),
    floors: {
      /** Read the figures by floor: `GET /api/dashboard/floors`. */
      list: calls.read('/api/dashboard/floors'),
      /** Read the figures of one floor: `GET /api/dashboard/floors/:id`. */
      read: calls.readOne('/api/dashboard/floors/:id')
    },
    /** Read the figures by department: `GET /api/dashboard/departments`. */
    departments: calls.read('/api/dashboard/departments'),
    /** Read the figures of personnel: `GET /api/dashboard/personnel`. */
    personnel: calls.read('/api/dashboard/personnel')
  },
  battery: {
    /** Read battery statistics: `GET /api/battery/stats`. */
    stats: calls.read('/api/battery/stats'),
    /** List battery alerts: `GET /api/battery/alerts`. */
    alerts: calls.read('/api/battery/alerts'),
    thresholds: {
      /** Read the battery alert thresholds: `GET /api/battery/thresholds`. */
      read: calls.read('/api/battery/thresholds'),
      /** Change the battery alert thresholds: `PUT /api/battery/thresholds`. */
      update: calls.send('PUT', '/api/battery/thresholds', BatteryThresholdsSchema)
    },
    device: {
      /** Read the battery level of a device: `GET /api/battery/device/:deviceId`. */
      read: calls.readOne('/api/battery/device/:deviceId')
    },
    history: {
      /** Read the battery history of a device: `GET /api/battery/history/:deviceId`. */
      read: calls.readOne('/api/battery/history/:deviceId')
    }
  },
  weather: {
    /** Read the current weather: `GET /api/weather/conditions`. */
    conditions: calls.read('/api/weather/conditions'),
    /** Read the weather forecast: `GET /api/weather/forecast`. */
    forecast: calls.read('/api/weather/forecast'),
    /** List weather alerts: `GET /api/weather/alerts`. */
    alerts: calls.read('/api/weather/alerts'),
    settings: {
      /** Read the actions for each severity: `GET /api/weather/settings`. */
      list: calls.read('/api/weather/settings'),
      /** Change the actions for a severity: `PUT /api/weather/settings/:severity`. */
      update: calls.sendTo('PUT', '/api/weather/settings/:severity', WeatherSeveritySettingsSchema)
    },
    /** Refresh the weather data: `POST /api/weather/refresh`. */
    refresh: calls.sendMaybe('POST', '/api/weather/refresh', ActionNoteSchema)
  },
  transmitters: {
    /** List transmitters: `GET /api/transmitters`. */
    list: calls.read('/api/transmitters'),
    /** Create a transmitter: `POST /api/transmitters`. */
    create: calls.send('POST', '/api/transmitters', TransmitterCreateSchema),
    /** Read one transmitter: `GET /api/transmitters/:id`. */
    read: calls.readOne('/api/transmitters/:id'),
    /** Replace a transmitter: `PUT /api/transmitters/:id`. */
    update: calls.sendTo('PUT', '/api/transmitters/:id', TransmitterUpdateSchema),
    /** Change a transmitter: `PATCH /api/transmitters/:id`. */
    patch: calls.sendTo('PATCH', '/api/transmitters/:id', TransmitterPatchSchema),
    /** Assign a transmitter to a person or an asset: `POST /api/transmitters/assign`. */
    assign: calls.send('POST', '/api/transmitters/assign', TransmitterAssignSchema),
    /** Create or change many transmitters: `POST /api/transmitters/bulk`. */
    bulk: calls.send('POST', '/api/transmitters/bulk', TransmitterBulkSchema),
    /** List unassigned transmitters: `GET /api/transmitters/unassigned`. */
    unassigned: calls.read('/api/transmitters/unassigned')
  },
  phoneBeacon: {
    /** Read an onboarding token: `GET /api/phone-beacon/:token`. */
    read: calls.readOne('/api/phone-beacon/:token'),
    /** Create an onboarding token: `POST /api/phone-beacon/onboarding-token`. */
    onboardingToken: calls.send('POST', '/api/phone-beacon/onboarding-token', OnboardingTokenRequestSchema),
    /** Complete an enrolment: `POST /api/phone-beacon/complete-enrollment`. */
    completeEnrollment: calls.send('POST', '/api/phone-beacon/complete-enrollment', EnrollmentCompletionSchema),
    /** List the identity-resolving keys of enrolled phones: `GET /api/phone-beacon/irk-records`. */
    irkRecords: calls.read('/api/phone-beacon/irk-records')
  },
  audit: {
    /** List audit records: `GET /api/audit/logs`. */
    logs: calls.read('/api/audit/logs'),
    /** Count audit records: `GET /api/audit/summary`. */
    summary: calls.read('/api/audit/summary'),
    /** Export audit records: `GET /api/audit/export`. */
    export: calls.download('/api/audit/export')
  },
  mgmt: {
    beacons: {
      /** List beacons: `GET /api/mgmt/beacons`. */
      list: calls.read('/api/mgmt/beacons'),
      /** Create a beacon: `POST /api/mgmt/beacons`. */
      create: calls.send('POST', '/api/mgmt/beacons', BeaconCreateSchema),
      /** Change many beacons: `PUT /api/mgmt/beacons`. */
      updateMany: calls.send('PUT', '/api/mgmt/beacons', BeaconUpdateSchema),
      /** Delete many beacons: `DELETE /api/mgmt/beacons`. */
      deleteMany: calls.sendMaybe('DELETE', '/api/mgmt/beacons', ActionNoteSchema),
      /** Read one beacon: `GET /api/mgmt/beacons/:id`. */
      read: calls.readOne('/api/mgmt/beacons/:id'),
      /** Perform an action on a beacon: `POST /api/mgmt/beacons/:id`. */
      act: calls.sendTo('POST', '/api/mgmt/beacons/:id', BeaconUpdateSchema),
      /** Change a beacon: `PUT /api/mgmt/beacons/:id`. */
      update: calls.sendTo('PUT', '/api/mgmt/beacons/:id', BeaconUpdateSchema),
      /** Delete a beacon: `DELETE /api/mgmt/beacons/:id`. */
      delete: calls.sendToMaybe('DELETE', '/api/mgmt/beacons/:id', ActionNoteSchema)
    },
    departments: {
      /** List departments: `GET /api/mgmt/departments`. */
      list: calls.read('/api/mgmt/departments'),
      /** Create a department: `POST /api/mgmt/departments`. */
      create: calls.send('POST', '/api/mgmt/departments', DepartmentCreateSchema),
      /** Change many departments: `PUT /api/mgmt/departments`. */
      updateMany: calls.send('PUT', '/api/mgmt/departments', DepartmentUpdateSchema),
      /** Delete many departments: `DELETE /api/mgmt/departments`. */
      deleteMany: calls.sendMaybe('DELETE', '/api/mgmt/departments', ActionNoteSchema),
      /** Read one department: `GET /api/mgmt/departments/:id`. */
      read: calls.readOne('/api/mgmt/departments/:id'),
      /** Perform an action on a department: `POST /api/mgmt/departments/:id`. */
      act: calls.sendTo('POST', '/api/mgmt/departments/:id', DepartmentUpdateSchema),
      /** Change a department: `PUT /api/mgmt/departments/:id`. */
      update: calls.sendTo('PUT', '/api/mgmt/departments/:id', DepartmentUpdateSchema),
      /** Delete a department: `DELETE /api/mgmt/departments/:id`. */
      delete: calls.sendToMaybe('DELETE', '/api/mgmt/departments/:id', ActionNoteSchema)
    },
    zoneTypes: {
      /** List zone types: `GET /api/mgmt/zone-types`. */
      list: calls.read('/api/mgmt/zone-types'),
      /** Create a zone type: `POST /api/mgmt/zone-types`. */
      create: calls.send('POST', '/api/mgmt/zone-types', ZoneTypeCreateSchema),
      /** Change many zone types: `PUT /api/mgmt/zone-types`. */
      updateMany: calls.send('PUT', '/api/mgmt/zone-types', ZoneTypeUpdateSchema),
      /** Delete many zone types: `DELETE /api/mgmt/zone-types`. */
      deleteMany: calls.sendMaybe('DELETE', '/api/mgmt/zone-types', ActionNoteSchema),
      /** Read one zone type: `GET /api/mgmt/zone-types/:id`. */
      read: calls.readOne('/api/mgmt/zone-types/:id'),
      /** Perform an action on a zone type: `POST /api/mgmt/zone-types/:id`. */
      act: calls.sendTo('POST', '/api/mgmt/zone-types/:id', ZoneTypeUpdateSchema),
      /** Change a zone type: `PUT /api/mgmt/zone-types/:id`. */
      update: calls.sendTo('PUT', '/api/mgmt/zone-types/:id', ZoneTypeUpdateSchema),
      /** Delete a zone type: `DELETE /api/mgmt/zone-types/:id`. */
      delete: calls.sendToMaybe('DELETE', '/api/mgmt/zone-types/:id', ActionNoteSchema)
    },
    settings: {
      /** Read all settings: `GET /api/mgmt/settings`. */
      read: calls.read('/api/mgmt/settings'),
      /** Write all settings: `POST /api/mgmt/settings`. */
      post: calls.send('POST', '/api/mgmt/settings', SettingsSchema),
      /** Replace all settings: `PUT /api/mgmt/settings`. */
      update: calls.send('PUT', '/api/mgmt/settings', SettingsSchema),
      /** Change all settings: `PATCH /api/mgmt/settings`. */
      patch: calls.send('PATCH', '/api/mgmt/settings', SettingsSchema),
      /** Reset all settings: `DELETE /api/mgmt/settings`. */
      delete: calls.sendMaybe('DELETE', '/api/mgmt/settings', ActionNoteSchema),
      ble: {
        /** Read Bluetooth settings: `GET /api/mgmt/settings/ble`. */
        read: calls.read('/api/mgmt/settings/ble'),
        /** Write Bluetooth settings: `POST /api/mgmt/settings/ble`. */
        post: calls.send('POST', '/api/mgmt/settings/ble', BleSettingsSchema),
        /** Replace Bluetooth settings: `PUT /api/mgmt/settings/ble`. */
        update: calls.send('PUT', '/api/mgmt/settings/ble', BleSettingsSchema),
        /** Change Bluetooth settings: `PATCH /api/mgmt/settings/ble`. */
        patch: calls.send('PATCH', '/api/mgmt/settings/ble', BleSettingsSchema),
        /** Reset Bluetooth settings: `DELETE /api/mgmt/settings/ble`. */
        delete: calls.sendMaybe('DELETE', '/api/mgmt/settings/ble', ActionNoteSchema)
      },
      alerts: {
        /** Read alert settings: `GET /api/mgmt/settings/alerts`. */
        read: calls.read('/api/mgmt/settings/alerts'),
        /** Write alert settings: `POST /api/mgmt/settings/alerts`. */
        post: calls.send('POST', '/api/mgmt/settings/alerts', AlertSettingsSchema),
        /** Replace alert settings: `PUT /api/mgmt/settings/alerts`. */
        update: calls.send('PUT', '/api/mgmt/settings/alerts', AlertSettingsSchema),
        /** Change alert settings: `PATCH /api/mgmt/settings/alerts`. */
        patch: calls.send('PATCH', '/api/mgmt/settings/alerts', AlertSettingsSchema),
        /** Reset alert settings: `DELETE /api/mgmt/settings/alerts`. */
        delete: calls.sendMaybe('DELETE', '/api/mgmt/settings/alerts', ActionNoteSchema)
      },
      general: {
        /** Read general settings: `GET /api/mgmt/settings/general`. */
        read: calls.read('/api/mgmt/settings/general'),
        /** Write general settings: `POST /api/mgmt/settings/general`. */
        post: calls.send('POST', '/api/mgmt/settings/general', GeneralSettingsSchema),
        /** Replace general settings: `PUT /api/mgmt/settings/general`. */
        update: calls.send('PUT', '/api/mgmt/settings/general', GeneralSettingsSchema),
        /** Change general settings: `PATCH /api/mgmt/settings/general`. */
        patch: calls.send('PATCH', '/api/mgmt/settings/general', GeneralSettingsSchema),
        /** Reset general settings: `DELETE /api/mgmt/settings/general`. */
        delete: calls.sendMaybe('DELETE', '/api/mgmt/settings/general', ActionNoteSchema)
      }
    }
  },
  context: {
    /** List the buildings and floors that the user may see: `GET /api/context`. */
    read: calls.read('/api/context'),
    floor: {
      /** Read everything that a floor plan shows: `GET /api/context/floor/:floorId`. */
      read: calls.readOne('/api/context/floor/:floorId')
    }
  },
  diagnostics: {
    /** List the signals that receivers measure: `GET /api/diagnostics/signal-monitor`. */
    signalMonitor: calls.read('/api/diagnostics/signal-monitor')
  },
  gateways: {
    /** Update the status of gateways: `POST /api/gateways/sync-status`. */
    syncStatus: calls.send('POST', '/api/gateways/sync-status', GatewaySyncStatusSchema)
  },
  positions: {
    /** List the past positions of a transmitter: `GET /api/positions/history`. */
    history: calls.read('/api/positions/history')
  },
  negotiate: {
    /** Get the address of the relay and a token for it: `GET /api/negotiate`. */
    read: calls.read('/api/negotiate'),
    /** Get the address of the relay and a token for it: `POST /api/negotiate`. */
    post: calls.sendMaybe('POST', '/api/negotiate', NegotiateRequestSchema)
  },
  health: {
    /** Check that the gateway is running: `GET /api/health`. */
    read: calls.read('/api/health'),
    /** Check that the backend is available: `GET /api/health/ready`. */
    ready: calls.read('/api/health/ready'),
    /** Check that the database is available: `GET /api/health/database`. */
    database: calls.read('/api/health/database')
  },
  activity: {
    /** List recent activity: `GET /api/activity`. */
    read: calls.read('/api/activity')
  },
  proxy: {
    /** Report an error of the web application: `POST /api/proxy/error-log`. */
    errorLog: calls.send('POST', '/api/proxy/error-log', ErrorReportSchema)
  }
})

/** Every route of the API as a function. */
export type Api = ReturnType<typeof operations>
