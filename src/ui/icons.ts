/** Outlines on a grid of 24, drawn with a line of 1.8. */
export const icons = {
  plan: 'M4 5h16v14H4zM4 12h7m3 0h6M11 5v4m0 6v4',
  dashboard: 'M5 20V11m5 9V4m5 16v-6m5 6V8',
  people:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM3 20c0-3.5 2.5-6 6-6s6 2.5 6 6M16 4.5a3.3 3.3 0 0 1 0 6M17.5 14.3c2.2.8 3.5 3 3.5 5.7',
  emergency: 'M12 3.5 21.5 20h-19ZM12 10v4.5m0 2.6v.1',
  users: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM4.5 20.5c.6-3.7 3.7-6 7.5-6s6.9 2.3 7.5 6',
  floors: 'm12 4 9 4.5-9 4.5-9-4.5ZM3 13l9 4.5 9-4.5',
  audit: 'M6 3.5h9l3.5 3.5v13.5H6zM9 11h6.5M9 15h6.5',
  settings:
    'M4 7h9m5 0h2M4 17h2m5 0h9M15.5 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM8.5 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'm6 6 12 12M18 6 6 18',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM12 3v2m0 14v2M3 12h2m14 0h2M5.6 5.6 7 7m10 10 1.4 1.4M5.6 18.4 7 17M17 7l1.4-1.4',
  moon: 'M20 14.5A8.2 8.2 0 0 1 9.5 4a8.2 8.2 0 1 0 10.5 10.5Z',
  leave: 'M10 4H5v16h5M14 8l4 4-4 4m4-4H9',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  fit: 'M4 9V4h5m6 0h5v5m0 6v5h-5m-6 0H4v-5',
  download: 'M12 4v11m-4.5-4.5L12 15l4.5-4.5M5 20h14',
  edit: 'm4 20 1-4.5L16.5 4 20 7.5 8.5 19Z',
  key: 'M8 19a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM11 12.5 19.5 4M16 7.5l3 3',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM15.5 15.5 20 20'
} as const

export type IconName = keyof typeof icons
