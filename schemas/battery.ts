import { type Static, Type } from '@sinclair/typebox'
import { flag, integer, MAX_PROPERTIES, maybe, number } from './field-kinds.js'

export const BatteryThresholdsSchema = Type.Object(
  {
    low: maybe(number(0, 100, 'Low level: charge at or below which a battery is low, in percent.')),
    warning: maybe(number(0, 100, 'Warning level: charge at or below which a battery should be checked, in percent.')),
    critical: maybe(number(0, 100, 'Critical level: charge at or below which a battery must be replaced, in percent.')),
    staleAfterHours: maybe(integer(0, 100_000, 'Hours without a report after which a reading is discarded.')),
    notify: maybe(flag('Whether people are notified.'))
  },
  {
    $id: 'BatteryThresholds',
    title: 'Battery thresholds',
    description: 'The thresholds for battery warnings.',
    examples: [{ low: 30, critical: 10, staleAfterHours: 48, notify: true }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type BatteryThresholds = Static<typeof BatteryThresholdsSchema>
