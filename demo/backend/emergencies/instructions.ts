import {
  agreedInstructions,
  DEFAULT_INSTRUCTIONS,
  EMERGENCY_TYPES,
  type EmergencyType,
  gathers,
  type Instructions,
  instructionError,
  isEmergencyType,
  TYPE_TITLES
} from '../../emergency-types.js'
import { invalid } from '../errors.js'
import { checkVersion } from '../queries.js'
import { getRecord } from '../records.js'
import { buildings } from '../resources.js'
import { idOf, type Run } from '../route.js'
import { storeSetting } from '../settings.js'
import type { Fields, World } from '../world.js'

interface OfBuilding {
  readonly id: string
  readonly name: string
  readonly instructions: Instructions
  /** The number of changes. */
  readonly version: number
}

/** The instructions of every building. Those that nobody has changed are the defaults. */
export const buildingInstructions = async ({ database }: Pick<World, 'database'>): Promise<OfBuilding[]> => {
  const rows = await database.rows<OfBuilding & { instructions: Partial<Instructions> | null }>(
    `SELECT b.id, b.name, s.value AS instructions, coalesce(s.version, 0) AS version FROM buildings b
     LEFT JOIN settings s ON s.id = 'instructions/' || b.id ORDER BY b.display_order, b.id`
  )
  return rows.map((row) => ({ ...row, instructions: { ...DEFAULT_INSTRUCTIONS, ...row.instructions } }))
}

/** Changes the sent instructions of a building. */
export const changeInstructions: Run = async (call) => {
  const { body } = call
  await getRecord(call, buildings, idOf(call))
  const errors = EMERGENCY_TYPES.flatMap((type) => {
    const message = instructionError(type, String(body[type] ?? ''))
    return message === null ? [] : [{ path: `/${type}`, message }]
  })
  if (errors.length > 0) throw invalid(errors)
  const setting = `instructions/${idOf(call)}`
  await checkVersion(call, 'settings', setting, 'the instructions')
  await storeSetting(call, setting, body)
  return (await buildingInstructions(call)).find(({ id }) => id === idOf(call))
}

/** Without a building, the entire site: the instruction of all buildings if they agree, otherwise the default. */
const instructionsFor = async (world: World, buildingId: string | null): Promise<Instructions> => {
  const all = await buildingInstructions(world)
  const own = all.find(({ id }) => id === buildingId)?.instructions
  if (own !== undefined || buildingId !== null) return own ?? DEFAULT_INSTRUCTIONS
  return agreedInstructions(all.map(({ instructions }) => instructions))
}

/** The type of an alarm: an unknown one would show wrong instructions. */
export const checkedType = (type: unknown): EmergencyType => {
  if (isEmergencyType(type)) return type
  throw invalid([{ path: '/type', message: `must be one of ${EMERGENCY_TYPES.join(', ')}` }])
}

/** The title and message of an alarm, and whether people gather. */
export const alarmFields = async (world: World, sent: Fields): Promise<Fields> => {
  const type = checkedType(sent.type)
  const instructions = await instructionsFor(world, sent.buildingId == null ? null : String(sent.buildingId))
  const message = typeof sent.message === 'string' ? sent.message : ''
  const isUsable = message !== '' && instructionError(type, message) === null
  return {
    title: sent.title || TYPE_TITLES[type],
    message: isUsable ? message : instructions[type],
    gathers: gathers(type, instructions)
  }
}
