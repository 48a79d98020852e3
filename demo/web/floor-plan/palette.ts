// Colours of the plan. A canvas does not read style sheets, so both themes are here.

export const lightPalette = {
  ground: '#ffffff',
  room: '#f4f7f8',
  corridor: '#ffffff',
  restricted: '#faefec',
  muster: '#e6f3ea',
  highlight: '#d3ebe9',
  wall: '#75858d',
  label: '#5a6871',
  count: '#1b2429',
  receiver: '#8b9aa2',
  receiverOff: '#b3261e',
  person: '#0b6b6b',
  thing: '#6f7c84',
  outline: '#ffffff',
  ambient: '#8a6d1f',
  selected: '#0b6b6b',
  tag: '#1b2429',
  tagText: '#ffffff'
}

export type Palette = Readonly<Record<keyof typeof lightPalette, string>>

export const darkPalette: Palette = {
  ground: '#151c20',
  room: '#1d262b',
  corridor: '#192125',
  restricted: '#2b2223',
  muster: '#1b2d25',
  highlight: '#1c4643',
  wall: '#7c8d96',
  label: '#a3b2ba',
  count: '#e6ecef',
  receiver: '#6f818a',
  receiverOff: '#ff8f86',
  person: '#63c9c2',
  thing: '#93a2aa',
  outline: '#11171a',
  ambient: '#d9b75a',
  selected: '#63c9c2',
  tag: '#e6ecef',
  tagText: '#11171a'
}
