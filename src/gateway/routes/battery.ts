import { BatteryThresholdsSchema } from '../../../schemas/battery.js'
import { get, put, type RouteTable } from './declare.js'

export const battery: RouteTable = {
  domain: 'battery',
  about: 'Batteries of beacons and receivers',
  rows: [
    get('/api/battery/stats', 'How full batteries are'),
    get('/api/battery/alerts', 'Batteries that need attention'),
    get('/api/battery/thresholds', 'When a battery needs attention'),
    put('/api/battery/thresholds', 'Change when a battery needs attention', BatteryThresholdsSchema),
    get('/api/battery/device/:deviceId', 'Battery of one device'),
    get('/api/battery/history/:deviceId', 'Battery of one device over time')
  ]
}
