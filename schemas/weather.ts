import { type Static, Type } from '@sinclair/typebox'
import { flag, integer, MAX_PROPERTIES, maybe, text, texts } from './field-kinds.js'

export const WeatherSeveritySettingsSchema = Type.Object(
  {
    enabled: maybe(flag('Whether alerts of this severity are used.')),
    notify: maybe(flag('Whether people are notified.')),
    notifyBySms: maybe(flag('Whether people are notified by text message.')),
    notifyByEmail: maybe(flag('Whether people are notified by e-mail.')),
    showBanner: maybe(flag('Whether the web application shows a banner.')),
    playSound: maybe(flag('Whether the web application makes a sound.')),
    triggerEmergency: maybe(flag('Whether such an alert raises an emergency.')),
    recipients: maybe(texts('The recipients.')),
    message: maybe(text('The message.', 2000)),
    color: maybe(text('The colour of the banner as a CSS value.', 64)),
    cooldownMinutes: maybe(integer(0, 100_000, 'Minutes to wait before the same alert is sent again.'))
  },
  {
    $id: 'WeatherSeveritySettings',
    title: 'Weather settings',
    description: 'The actions on weather alerts of one severity.',
    examples: [{ enabled: true, showBanner: true, recipients: ['ada@example.com'], cooldownMinutes: 30 }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type WeatherSeveritySettings = Static<typeof WeatherSeveritySettingsSchema>
