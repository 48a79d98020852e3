import type { TSchema } from '@sinclair/typebox'
import { ActionNoteSchema } from './action-note.js'
import { AssetCreateSchema, AssetUpdateSchema } from './assets.js'
import { LoginSchema, SessionExchangeSchema, SessionResponseSchema } from './auth.js'
import { BatteryThresholdsSchema } from './battery.js'
import { BuildingCreateSchema, BuildingOrderSchema, BuildingUpdateSchema } from './buildings.js'
import {
  EmergencyContactCreateSchema,
  EmergencyContactUpdateSchema,
  EmergencyCreateSchema,
  EmergencyTriggerSchema,
  EmergencyUpdateSchema
} from './emergency.js'
import { ErrorBodySchema } from './error-body.js'
import { ErrorReportSchema } from './error-report.js'
import { FloorCalibrationAcceptSchema, FloorCalibrationSchema, FloorCreateSchema, FloorUpdateSchema } from './floors.js'
import { GatewaySyncStatusSchema } from './gateways.js'
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
} from './management.js'
import {
  PersonnelBatchDeleteSchema,
  PersonnelBulkSchema,
  PersonnelCreateSchema,
  PersonnelUpdateSchema
} from './personnel.js'
import { EnrollmentCompletionSchema, OnboardingTokenRequestSchema } from './phone-beacon.js'
import {
  AmbientBatchSchema,
  AmbientEntrySchema,
  NegotiateRequestSchema,
  PositionBatchSchema,
  PositionEntrySchema
} from './realtime.js'
import { ReceiverBulkSchema, ReceiverCreateSchema, ReceiverUpdateSchema } from './receivers.js'
import { AuthPermissionsSchema, AuthUserSchema, TokenExpirySchema } from './session.js'
import {
  TransmitterAssignSchema,
  TransmitterBulkSchema,
  TransmitterCreateSchema,
  TransmitterPatchSchema,
  TransmitterUpdateSchema
} from './transmitters.js'
import { PasswordResetSchema, UserCreateSchema, UserUpdateSchema } from './users.js'
import { WeatherSeveritySettingsSchema } from './weather.js'
import { ZoneCreateSchema, ZoneUpdateSchema } from './zones.js'

/** Every body and payload by its name, which is also its `$id`. */
export const schemas = {
  ActionNote: ActionNoteSchema,
  AssetCreate: AssetCreateSchema,
  AssetUpdate: AssetUpdateSchema,
  Login: LoginSchema,
  SessionExchange: SessionExchangeSchema,
  SessionResponse: SessionResponseSchema,
  BatteryThresholds: BatteryThresholdsSchema,
  BuildingCreate: BuildingCreateSchema,
  BuildingUpdate: BuildingUpdateSchema,
  BuildingOrder: BuildingOrderSchema,
  EmergencyCreate: EmergencyCreateSchema,
  EmergencyUpdate: EmergencyUpdateSchema,
  EmergencyTrigger: EmergencyTriggerSchema,
  EmergencyContactCreate: EmergencyContactCreateSchema,
  EmergencyContactUpdate: EmergencyContactUpdateSchema,
  ErrorBody: ErrorBodySchema,
  ErrorReport: ErrorReportSchema,
  FloorCreate: FloorCreateSchema,
  FloorUpdate: FloorUpdateSchema,
  FloorCalibration: FloorCalibrationSchema,
  FloorCalibrationAccept: FloorCalibrationAcceptSchema,
  GatewaySyncStatus: GatewaySyncStatusSchema,
  BeaconCreate: BeaconCreateSchema,
  BeaconUpdate: BeaconUpdateSchema,
  DepartmentCreate: DepartmentCreateSchema,
  DepartmentUpdate: DepartmentUpdateSchema,
  ZoneTypeCreate: ZoneTypeCreateSchema,
  ZoneTypeUpdate: ZoneTypeUpdateSchema,
  BleSettings: BleSettingsSchema,
  AlertSettings: AlertSettingsSchema,
  GeneralSettings: GeneralSettingsSchema,
  Settings: SettingsSchema,
  PersonnelCreate: PersonnelCreateSchema,
  PersonnelUpdate: PersonnelUpdateSchema,
  PersonnelBatchDelete: PersonnelBatchDeleteSchema,
  PersonnelBulk: PersonnelBulkSchema,
  OnboardingTokenRequest: OnboardingTokenRequestSchema,
  EnrollmentCompletion: EnrollmentCompletionSchema,
  NegotiateRequest: NegotiateRequestSchema,
  PositionEntry: PositionEntrySchema,
  PositionBatch: PositionBatchSchema,
  AmbientEntry: AmbientEntrySchema,
  AmbientBatch: AmbientBatchSchema,
  ReceiverCreate: ReceiverCreateSchema,
  ReceiverUpdate: ReceiverUpdateSchema,
  ReceiverBulk: ReceiverBulkSchema,
  AuthUser: AuthUserSchema,
  AuthPermissions: AuthPermissionsSchema,
  TokenExpiry: TokenExpirySchema,
  TransmitterCreate: TransmitterCreateSchema,
  TransmitterUpdate: TransmitterUpdateSchema,
  TransmitterPatch: TransmitterPatchSchema,
  TransmitterAssign: TransmitterAssignSchema,
  TransmitterBulk: TransmitterBulkSchema,
  UserCreate: UserCreateSchema,
  UserUpdate: UserUpdateSchema,
  PasswordReset: PasswordResetSchema,
  WeatherSeveritySettings: WeatherSeveritySettingsSchema,
  ZoneCreate: ZoneCreateSchema,
  ZoneUpdate: ZoneUpdateSchema
} as const satisfies Record<string, TSchema>

export type SchemaName = keyof typeof schemas
