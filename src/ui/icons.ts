/** SVG paths on a 24 × 24 grid, drawn with a stroke width of 1.8. */
export const icons = {
  plan: 'M4 5h16v14H4zM4 12h7m3 0h6M11 5v4m0 6v4',
  dashboard: 'M5 20V11m5 9V4m5 16v-6m5 6V8',
  asset: 'M4 8l8-4.5L20 8v8l-8 4.5L4 16ZM4 8l8 4.5L20 8m-8 4.5v8',
  zone: 'M4 4h7v7H4zM14 4h6v6h-6zM4 14h6v6H4zM13 13h7v7h-7z',
  tag: 'M4 4h8l8.5 8.5-8 8L4 12ZM8 8v.1',
  people:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM3 20c0-3.5 2.5-6 6-6s6 2.5 6 6M16 4.5a3.3 3.3 0 0 1 0 6M17.5 14.3c2.2.8 3.5 3 3.5 5.7',
  emergency: 'M12 3.5 21.5 20h-19ZM12 10v4.5m0 2.6v.1',
  users: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM4.5 20.5c.6-3.7 3.7-6 7.5-6s6.9 2.3 7.5 6',
  audit: 'M6 3.5h9l3.5 3.5v13.5H6zM9 11h6.5M9 15h6.5',
  settings:
    'M4 7h9m5 0h2M4 17h2m5 0h9M15.5 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM8.5 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'm6 6 12 12M18 6 6 18',
  leave: 'M10 4H5v16h5M14 8l4 4-4 4m4-4H9',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  download: 'M12 4v11m-4.5-4.5L12 15l4.5-4.5M5 20h14',
  print: 'M7 9V4h10v5M7 17H4V9h16v8h-3M7 14h10v6H7z',
  edit: 'm4 20 1-4.5L16.5 4 20 7.5 8.5 19Z',
  key: 'M8 19a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM11 12.5 19.5 4M16 7.5l3 3',
  unlock: 'M6 11h12v9H6zM9 11V7.5a3 3 0 0 1 5.8-1M12 14.5v2',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  channels:
    'M12 13.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3ZM8.5 15.5a5 5 0 0 1 0-7m7 0a5 5 0 0 1 0 7M5.6 18.4a9 9 0 0 1 0-12.8m12.8 0a9 9 0 0 1 0 12.8',
  plug: 'M9 3v5m6-5v5M6.5 8h11v3.5a5.5 5.5 0 0 1-11 0ZM12 17v4',
  list: 'M9 6.5h11M9 12h11M9 17.5h11M4 6.5l1 1 1.5-2M4 12l1 1 1.5-2M4 17.5l1 1 1.5-2',
  good: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM8 12.2l2.8 2.8L16 9.5',
  bad: 'M8.3 3.5h7.4l4.8 4.8v7.4l-4.8 4.8H8.3l-4.8-4.8V8.3ZM9.2 9.2l5.6 5.6m0-5.6-5.6 5.6',
  refresh: 'M19.5 12a7.5 7.5 0 1 1-2.2-5.3L19.5 9m0-4.5V9H15',
  back: 'M11 5.5 4.5 12l6.5 6.5M5 12h15',
  up: 'M12 19V5.5M6.5 11 12 5.5l5.5 5.5',
  down: 'M12 5v13.5M6.5 13l5.5 5.5 5.5-5.5',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM15.5 15.5 20 20'
} as const

export type IconName = keyof typeof icons
