import { Type } from '@sinclair/typebox'
import { flag, label } from '../schemas/field-kinds.js'

// The types of alarms of the demo, for its page and its backend.

export const EMERGENCY_TYPES = ['fire', 'intruder', 'medical', 'chemical', 'other'] as const
export type EmergencyType = (typeof EMERGENCY_TYPES)[number]

export const TYPE_TITLES: Readonly<Record<EmergencyType, string>> = {
  fire: 'Fire',
  intruder: 'Intruder',
  medical: 'Medical emergency',
  chemical: 'Chemical release',
  other: 'Other emergency'
}

export const isEmergencyType = (type: unknown): type is EmergencyType => EMERGENCY_TYPES.some((known) => known === type)

/** The instructions of a building, and whether people gather at the assembly area where that is not fixed by the type. */
export type Instructions = Readonly<Record<EmergencyType, string>> & {
  readonly chemicalGathers: boolean
  readonly otherGathers: boolean
}

export const DEFAULT_INSTRUCTIONS: Instructions = {
  fire: 'Leave the building by the nearest safe exit and go to the assembly area. Do not use lifts.',
  intruder:
    'Stay where you are. Lock the door, turn off lights and sound, and keep out of sight until the police or security release you.',
  medical: 'First aiders go to the scene. All others stay away from it and keep corridors, lifts and entrances clear.',
  chemical:
    'Hold a cloth over mouth and nose, leave against the wind and go to the assembly area. Do not touch the substance.',
  other: 'Stop work, stay calm, and follow the instructions of wardens and security.',
  chemicalGathers: true,
  otherGathers: false
}

/** For the entire site: the instructions on which all buildings agree, otherwise the defaults. */
export const agreedInstructions = ([first, ...others]: readonly Instructions[]): Instructions => {
  const agreed = Object.entries(first ?? {}).filter(([name, value]) =>
    others.every((other) => Object.entries(other).some(([key, text]) => key === name && text === value))
  )
  return { ...DEFAULT_INSTRUCTIONS, ...Object.fromEntries(agreed) }
}

/** Whether people go to the assembly area, so that a person elsewhere is missing. */
export const gathers = (type: EmergencyType, { chemicalGathers, otherGathers }: Instructions): boolean =>
  type === 'fire' || (type === 'chemical' && chemicalGathers) || (type === 'other' && otherGathers)

const LEAVING =
  /(?<!\b(?:not|never|don['’]t) )\b(?:leave|evacuate|exit) (?:the|this|your) (?:building|premises|site)\b/i

/** The reason why a text must not be the instruction for this type; null if it may. */
export const instructionError = (type: string, text: string): string | null =>
  type === 'intruder' && LEAVING.test(text) ? 'must not tell people to leave the building' : null

const instruction = (description: string) => Type.Optional(label(description, 500))

/** The instructions of a building to change. */
export const InstructionsSchema = Type.Object(
  {
    fire: instruction('Shown during a fire alarm. People gather at the assembly area.'),
    intruder: instruction('Shown during an intruder alarm. It must not tell people to leave the building.'),
    medical: instruction('Shown during a medical emergency. People do not gather.'),
    chemical: instruction('Shown during a release of chemicals.'),
    chemicalGathers: Type.Optional(flag('Otherwise they stay inside, and nobody is missing.')),
    other: instruction('Shown during any other emergency.'),
    otherGathers: Type.Optional(flag('Otherwise they stay where they are, and nobody is missing.'))
  },
  { $id: 'EmergencyInstructions', title: 'Emergency instructions', additionalProperties: false, minProperties: 1 }
)
