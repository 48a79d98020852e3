import { wordsOf } from '../field-words.js'
import { appliedFilters, exported } from '../queries.js'
import { personnel } from '../resources.js'
import { type Call, type Handlers, handler, perMinute } from '../route.js'
import { readSetting } from '../settings.js'
import { images } from '../uploads.js'
import type { Fields } from '../world.js'

const PHOTOS = { options: { bodyLimit: 2 * 1024 * 1024 }, status: 201 }
const EXPORTS = perMinute(30)

/** The widths add up to 1. */
const PDF_COLUMNS = [
  { field: 'name', title: 'Name', width: 0.22 },
  { field: 'jobTitle', title: 'Job title', width: 0.19 },
  { field: 'department', title: 'Department', width: 0.16 },
  { field: 'email', title: 'E-mail', width: 0.3 },
  { field: 'transmitterId', title: 'Transmitter', width: 0.13 }
]

/** The tables that the values of filters refer to. */
const NAMED_IN: Readonly<Record<string, string>> = {
  departmentId: 'departments',
  buildingId: 'buildings',
  floorId: 'floors',
  currentFloorId: 'floors',
  currentZoneId: 'zones'
}

/** "department Research, search “ada”"; empty if the list is complete. */
const filterText = async (call: Call): Promise<string> => {
  const texts: string[] = []
  for (const [field, value] of appliedFilters(call.query, personnel)) {
    const table = NAMED_IN[field]
    const [named] = table
      ? await call.database.rows<{ name: string }>(`SELECT name FROM ${table} WHERE id = $1`, [value])
      : []
    texts.push(`${wordsOf(field)} ${named?.name ?? `“${value}”`}`)
  }
  return texts.join(', ')
}

const writePdf = async (people: readonly Fields[], call: Call): Promise<Buffer> => {
  // Loaded when it is needed, because the libraries take as long as the rest of the backend.
  const { pdfTable } = await import('../export/pdf.js')
  const { organizationName, timezone } = await readSetting(call, 'general')
  return pdfTable({
    site: String(organizationName ?? ''),
    title: 'Personnel',
    filter: await filterText(call),
    at: call.now(),
    timeZone: String(timezone ?? ''),
    columns: PDF_COLUMNS,
    rows: people
  })
}

const photo = images('photo', personnel)

/** Personnel as files: the PDF export, and photos. */
export const personnelFileRoutes: Handlers = {
  'GET /api/personnel/:id/photo': handler('personnel.read', photo.show),
  'POST /api/personnel/:id/photo': handler('personnel.update', photo.store, PHOTOS),
  'DELETE /api/personnel/:id/photo': handler('personnel.update', photo.remove),
  'GET /api/personnel/export/pdf': handler('personnel.export', exported(personnel, 'personnel.pdf', writePdf), EXPORTS)
}
