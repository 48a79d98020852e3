import { centerOf } from './geometry.js'
import type { FloorLayout, ZoneKind } from './layout.js'

export const ZONE_COLORS: Readonly<Record<ZoneKind, string>> = {
  corridor: '#eceff1',
  stairs: '#cfd8dc',
  office: '#e3f2fd',
  laboratory: '#ede7f6',
  meeting: '#fff3e0',
  common: '#e8f5e9',
  restricted: '#ffebee',
  muster: '#c8e6c9'
}

const PIXELS_PER_METRE = 20

type Drawn = Pick<FloorLayout, 'width' | 'height' | 'regions' | 'walls'>

/** A floor plan as an image: what a page shows for a floor that nobody has uploaded a plan for. */
export const planSvg = ({ width, height, regions, walls }: Drawn): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ` +
      `width="${width * PIXELS_PER_METRE}" height="${height * PIXELS_PER_METRE}">`,
    `<rect width="${width}" height="${height}" fill="#fafafa"/>`,
    ...regions.map(
      ({ rect, kind }) =>
        `<rect x="${rect.x}" y="${rect.y}" width="${rect.width}" height="${rect.height}" fill="${ZONE_COLORS[kind]}"/>`
    ),
    `<g stroke="#37474f" stroke-width="0.2" stroke-linecap="round">`,
    ...walls.map(([x1, y1, x2, y2]) => `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`),
    `</g><g font-family="sans-serif" font-size="0.9" fill="#455a64" text-anchor="middle">`,
    ...regions.map(({ rect, name }) => {
      const { x, y } = centerOf(rect)
      return `<text x="${x}" y="${y}">${escaped(name)}</text>`
    }),
    '</g></svg>'
  ].join('')

const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
