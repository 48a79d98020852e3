import type { TSchema } from '@sinclair/typebox'
import { ActionNoteSchema } from '../../../../schemas/action-note.js'
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
import { defineRoutes, del, get, patch, post, put, type RouteDeclaration } from './declare.js'

/** All methods on a collection and on its items. The backend decides which of them it supports. */
const collection = (
  path: `/api/mgmt/${string}`,
  name: string,
  create: TSchema,
  update: TSchema
): readonly RouteDeclaration[] => [
  get(path, `List ${name}s`),
  post(path, `Create a ${name}`, create),
  put(path, `Change many ${name}s`, update),
  del(path, `Delete many ${name}s`, ActionNoteSchema),
  get(`${path}/:id`, `Read one ${name}`),
  post(`${path}/:id`, `Perform an action on a ${name}`, update),
  put(`${path}/:id`, `Change a ${name}`, update),
  del(`${path}/:id`, `Delete a ${name}`, ActionNoteSchema)
]

/** All methods on a group of settings, each with a schema. */
const settingsPage = (path: `/api/mgmt/${string}`, name: string, schema: TSchema): readonly RouteDeclaration[] => [
  get(path, `Read ${name}`),
  post(path, `Write ${name}`, schema),
  put(path, `Replace ${name}`, schema),
  patch(path, `Change ${name}`, schema),
  del(path, `Reset ${name}`, ActionNoteSchema)
]

export const management = defineRoutes({
  domain: 'management',
  about: 'Beacons, departments, zone types and settings',
  rows: [
    ...collection('/api/mgmt/beacons', 'beacon', BeaconCreateSchema, BeaconUpdateSchema),
    ...collection('/api/mgmt/departments', 'department', DepartmentCreateSchema, DepartmentUpdateSchema),
    ...collection('/api/mgmt/zone-types', 'zone type', ZoneTypeCreateSchema, ZoneTypeUpdateSchema),
    ...settingsPage('/api/mgmt/settings', 'all settings', SettingsSchema),
    ...settingsPage('/api/mgmt/settings/ble', 'Bluetooth settings', BleSettingsSchema),
    ...settingsPage('/api/mgmt/settings/alerts', 'alert settings', AlertSettingsSchema),
    ...settingsPage('/api/mgmt/settings/general', 'general settings', GeneralSettingsSchema)
  ]
})
