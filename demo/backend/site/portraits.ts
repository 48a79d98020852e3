import { pick, seededRandom } from '../random.js'

// Drawn portraits, so that the demo has photos without showing real people.

const BACKGROUNDS = ['#cfd8dc', '#c5cae9', '#b2dfdb', '#ffe0b2', '#d7ccc8', '#c8e6c9', '#f8d7e3', '#bbdefb']
const SKINS = ['#f6d7c3', '#eec1a2', '#d9a37e', '#b97f57', '#8d5a3b', '#6b452f']
const HAIRS = ['#2b2320', '#4a3428', '#6f4a2f', '#a5703d', '#cfa866', '#9a9a9a', '#a8503c']
const CLOTHES = ['#37474f', '#1565c0', '#00695c', '#6d4c41', '#5e35b1', '#ad1457', '#f5f5f5', '#b0bec5']
const INK = '#30262a'

const ellipse = (cx: number, cy: number, rx: number, ry: number): string =>
  `<ellipse cx="${cx}" cy="${cy}" rx="${rx}" ry="${ry}"/>`

/** The hair behind the head, and where the lower edge of the hair above the face is highest. */
const HAIRCUTS = [
  { behind: '', fringe: 44 },
  { behind: '', fringe: 50 },
  { behind: ellipse(50, 38, 25, 23), fringe: 52 },
  { behind: ellipse(50, 50, 24, 29), fringe: 60 },
  { behind: ellipse(50, 45, 24, 28) + ellipse(50, 70, 25, 20), fringe: 38 },
  { behind: ellipse(50, 18, 9, 8), fringe: 48 }
]

/** A picture of a person as SVG. The same number always gives the same picture. */
export const portrait = (id: string): string => {
  const random = seededRandom(Number(id) || 0)
  const [skin, hair, clothes] = [pick(random, SKINS), pick(random, HAIRS), pick(random, CLOTHES)]
  const { behind, fringe } = pick(random, HAIRCUTS)
  const glasses = '<circle cx="42.5" cy="47" r="6"/><circle cx="57.5" cy="47" r="6"/>'
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="88" height="88" viewBox="0 0 100 100">`,
    `<rect width="100" height="100" fill="${pick(random, BACKGROUNDS)}"/>`,
    `<g fill="${hair}">${behind}</g>`,
    `<g fill="${clothes}">${ellipse(50, 108, 42, 37)}</g>`,
    `<g fill="${skin}">${ellipse(50, 68, 9, 17)}${ellipse(32, 48, 3.5, 5)}${ellipse(68, 48, 3.5, 5)}${ellipse(50, 46, 18, 22)}</g>`,
    `<path fill="${hair}" d="M31 44 Q29 20 50 19 Q71 20 69 44 Q${fringe} 26 31 44 Z"/>`,
    `<g fill="${INK}">${ellipse(43, 47, 2, 2.4)}${ellipse(57, 47, 2, 2.4)}</g>`,
    `<g fill="none" stroke="${INK}" stroke-width="1.4"><path d="M44 57 Q50 62 56 57"/>${random() < 0.25 ? glasses : ''}</g>`,
    '</svg>'
  ].join('')
}
