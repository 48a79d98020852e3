// Colours of the plan, in the light theme and in the dark one. A canvas does not read style sheets.

const COLOURS = {
  ground: ['#ffffff', '#151c20'],
  room: ['#f4f7f8', '#1d262b'],
  corridor: ['#ffffff', '#192125'],
  restricted: ['#faefec', '#2b2223'],
  muster: ['#e6f3ea', '#1b2d25'],
  highlight: ['#d3ebe9', '#1c4643'],
  wall: ['#75858d', '#7c8d96'],
  label: ['#5a6871', '#a3b2ba'],
  count: ['#1b2429', '#e6ecef'],
  receiver: ['#8b9aa2', '#6f818a'],
  receiverOff: ['#b3261e', '#ff8f86'],
  person: ['#0b6b6b', '#63c9c2'],
  thing: ['#6f7c84', '#93a2aa'],
  outline: ['#ffffff', '#11171a'],
  ambient: ['#8a6d1f', '#d9b75a'],
  selected: ['#0b6b6b', '#63c9c2'],
  tag: ['#1b2429', '#e6ecef'],
  tagText: ['#ffffff', '#11171a']
} as const

export type Palette = Readonly<Record<keyof typeof COLOURS, string>>

const paletteOf = (theme: 0 | 1): Palette =>
  Object.fromEntries(Object.entries(COLOURS).map(([name, pair]) => [name, pair[theme]])) as Palette

export const lightPalette = paletteOf(0)
export const darkPalette = paletteOf(1)
