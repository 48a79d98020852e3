import { BatteryThresholdsSchema } from '../../../../schemas/battery.js'
import { defineRoutes, get, put } from './declare.js'

export const battery = defineRoutes({
  domain: 'battery',
  about: 'Batteries of beacons and receivers',
  rows: [
    get('/api/battery/stats', 'Read battery statistics'),
    get('/api/battery/alerts', 'List battery alerts'),
    get('/api/battery/thresholds', 'Read the battery alert thresholds'),
    put('/api/battery/thresholds', 'Change the battery alert thresholds', BatteryThresholdsSchema),
    get('/api/battery/device/:deviceId', 'Read the battery level of a device'),
    get('/api/battery/history/:deviceId', 'Read the battery history of a device')
  ]
})
