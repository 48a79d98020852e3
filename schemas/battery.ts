import { type Static, Type } from '@sinclair/typebox'
import { flag, integer, MAX_PROPERTIES, maybe, number } from './field-kinds.js'

export const BatteryThresholdsSchema = Type.Object(
  {
    low: maybe(number(0, 100, 'From here down a battery is low, in percent.')),
    warning: maybe(number(0, 100, 'From here down a battery deserves a look, in percent.')),
    critical: maybe(number(0, 100, 'From here down a battery must be changed, in percent.')),
    staleAfterHours: maybe(integer(0, 100_000, 'After how many silent hours a reading no longer counts.')),
    notify: maybe(flag('Whether people are told.'))
  },
  {
    $id: 'BatteryThresholds',
    title: 'Battery thresholds',
    description: 'When a battery is low.',
    examples: [{ low: 30, critical: 10, staleAfterHours: 48, notify: true }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type BatteryThresholds = Static<typeof BatteryThresholdsSchema>
