// The specified routes, copied by hand from the specification and not from the code.

export interface SpecifiedDomain {
  readonly domain: string
  /** Each as `METHOD /path`. */
  readonly routes: readonly string[]
}

export const specifiedDomains: readonly SpecifiedDomain[] = [
  {
    domain: 'auth',
    routes: [
      'POST /api/auth/login',
      'POST /api/auth/logout',
      'POST /api/auth/backend-login',
      'GET /api/auth/backend-me',
      'GET /api/auth/csrf-token'
    ]
  },
  {
    domain: 'users',
    routes: [
      'GET /api/users',
      'POST /api/users',
      'PUT /api/users/{id}',
      'DELETE /api/users/{id}',
      'POST /api/users/{id}/reset-password',
      'POST /api/users/{id}/unlock',
      'GET /api/users/roles'
    ]
  },
  {
    domain: 'buildings',
    routes: [
      'GET /api/buildings',
      'POST /api/buildings',
      'GET /api/buildings/{id}',
      'PUT /api/buildings/{id}',
      'DELETE /api/buildings/{id}',
      'PUT /api/buildings/order',
      'GET /api/buildings/gateway-health'
    ]
  },
  {
    domain: 'floors',
    routes: [
      'POST /api/floors',
      'PUT /api/floors/{id}',
      'DELETE /api/floors/{id}',
      'POST /api/floors/{floorId}/upload',
      'POST /api/floors/{floorId}/calibrate',
      'POST /api/floors/{floorId}/calibrate/accept'
    ]
  },
  {
    domain: 'zones',
    routes: [
      'GET /api/zones',
      'POST /api/zones',
      'GET /api/zones/{id}',
      'PUT /api/zones/{id}',
      'DELETE /api/zones/{id}',
      'GET /api/zones/emergency'
    ]
  },
  {
    domain: 'receivers',
    routes: [
      'GET /api/receivers',
      'POST /api/receivers',
      'GET /api/receivers/{id}',
      'PUT /api/receivers/{id}',
      'DELETE /api/receivers/{id}',
      'POST /api/receivers/bulk',
      'GET /api/receivers/discover'
    ]
  },
  {
    domain: 'personnel',
    routes: [
      'GET /api/personnel',
      'POST /api/personnel',
      'PUT /api/personnel/{id}',
      'DELETE /api/personnel/{id}',
      'POST /api/personnel/{id}/photo',
      'DELETE /api/personnel/{id}/photo',
      'GET /api/personnel/{id}/beacons',
      'GET /api/personnel/export/csv',
      'GET /api/personnel/export/pdf',
      'POST /api/personnel/batch-delete',
      'POST /api/personnel/bulk-activate',
      'POST /api/personnel/bulk-deactivate'
    ]
  },
  {
    domain: 'assets',
    routes: [
      'GET /api/assets',
      'POST /api/assets',
      'GET /api/assets/{id}',
      'PUT /api/assets/{id}',
      'DELETE /api/assets/{id}',
      'GET /api/assets/{id}/history'
    ]
  },
  {
    domain: 'emergency',
    routes: [
      'GET /api/emergency',
      'POST /api/emergency',
      'GET /api/emergency/{id}',
      'PUT /api/emergency/{id}',
      'POST /api/emergency/trigger',
      'GET /api/emergency/active',
      'GET /api/emergency/events',
      'GET /api/emergency/muster',
      'GET /api/emergency/contacts',
      'POST /api/emergency/contacts',
      'PUT /api/emergency/contacts/{contactId}',
      'DELETE /api/emergency/contacts/{contactId}'
    ]
  },
  {
    domain: 'dashboard',
    routes: [
      'GET /api/dashboard',
      'GET /api/dashboard/summary',
      'GET /api/dashboard/buildings',
      'GET /api/dashboard/floors',
      'GET /api/dashboard/floors/{id}',
      'GET /api/dashboard/departments',
      'GET /api/dashboard/personnel'
    ]
  },
  {
    domain: 'battery',
    routes: [
      'GET /api/battery/stats',
      'GET /api/battery/alerts',
      'GET /api/battery/thresholds',
      'PUT /api/battery/thresholds',
      'GET /api/battery/device/{deviceId}',
      'GET /api/battery/history/{deviceId}'
    ]
  },
  {
    domain: 'weather',
    routes: [
      'GET /api/weather/conditions',
      'GET /api/weather/forecast',
      'GET /api/weather/alerts',
      'GET /api/weather/settings',
      'PUT /api/weather/settings/{severity}',
      'POST /api/weather/refresh'
    ]
  },
  {
    domain: 'transmitters',
    routes: [
      'GET /api/transmitters',
      'POST /api/transmitters',
      'GET /api/transmitters/{id}',
      'PUT /api/transmitters/{id}',
      'PATCH /api/transmitters/{id}',
      'POST /api/transmitters/assign',
      'POST /api/transmitters/bulk',
      'GET /api/transmitters/unassigned'
    ]
  },
  {
    domain: 'phone beacon',
    routes: [
      'GET /api/phone-beacon/{token}',
      'POST /api/phone-beacon/onboarding-token',
      'POST /api/phone-beacon/complete-enrollment',
      'GET /api/phone-beacon/irk-records'
    ]
  },
  {
    domain: 'audit',
    routes: ['GET /api/audit/logs', 'GET /api/audit/summary', 'GET /api/audit/export']
  },
  {
    // Specified as four methods "under" three paths: the path itself and one item below it.
    domain: 'management',
    routes: [
      'GET /api/mgmt/beacons',
      'POST /api/mgmt/beacons',
      'PUT /api/mgmt/beacons',
      'DELETE /api/mgmt/beacons',
      'GET /api/mgmt/beacons/{id}',
      'POST /api/mgmt/beacons/{id}',
      'PUT /api/mgmt/beacons/{id}',
      'DELETE /api/mgmt/beacons/{id}',
      'GET /api/mgmt/departments',
      'POST /api/mgmt/departments',
      'PUT /api/mgmt/departments',
      'DELETE /api/mgmt/departments',
      'GET /api/mgmt/departments/{id}',
      'POST /api/mgmt/departments/{id}',
      'PUT /api/mgmt/departments/{id}',
      'DELETE /api/mgmt/departments/{id}',
      'GET /api/mgmt/zone-types',
      'POST /api/mgmt/zone-types',
      'PUT /api/mgmt/zone-types',
      'DELETE /api/mgmt/zone-types',
      'GET /api/mgmt/zone-types/{id}',
      'POST /api/mgmt/zone-types/{id}',
      'PUT /api/mgmt/zone-types/{id}',
      'DELETE /api/mgmt/zone-types/{id}'
    ]
  },
  {
    domain: 'context',
    routes: ['GET /api/context', 'GET /api/context/floor/{floorId}']
  },
  {
    domain: 'diagnostics',
    routes: ['GET /api/diagnostics/signal-monitor']
  },
  {
    domain: 'gateways',
    routes: ['POST /api/gateways/sync-status']
  },
  {
    domain: 'positions',
    routes: ['GET /api/positions/history']
  },
  {
    domain: 'realtime',
    routes: ['GET /api/negotiate', 'POST /api/negotiate']
  },
  {
    domain: 'activity',
    routes: ['GET /api/activity']
  },
  {
    domain: 'proxy',
    routes: ['POST /api/proxy/error-log']
  }
]

/** Paths that are specified without methods. */
export const specifiedWithoutMethods: readonly SpecifiedDomain[] = [
  {
    domain: 'management',
    routes: ['/api/mgmt/settings', '/api/mgmt/settings/ble', '/api/mgmt/settings/alerts', '/api/mgmt/settings/general']
  },
  { domain: 'health', routes: ['/api/health/database'] }
]

/** The only routes that accept files. */
export const specifiedUploads: readonly string[] = [
  'POST /api/floors/{floorId}/upload',
  'POST /api/personnel/{id}/photo'
]
