/**
 * `npm run protocol`: generates the description of the protobuf messages from protocol.proto, so that the relay needs neither
 * that file nor a parser at run time. A test checks that the generated file is current.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import protobuf from 'protobufjs'
import { runCommand } from './lib/command.js'
import { formatSource } from './lib/format.js'
import { ROOT } from './lib/root.js'

const PROTO_FILE = join(ROOT, 'src/relay/protobuf/protocol.proto')
export const DESCRIPTOR_FILE = join(ROOT, 'src/relay/protobuf/descriptor.ts')

export const protobufDescriptor = (): string => {
  const { root } = protobuf.parse(readFileSync(PROTO_FILE, 'utf8'), { keepCase: true })
  const { nested } = root.lookup('gatehouse.relay')?.toJSON() ?? {}
  return formatSource(
    `// Written by \`npm run protocol\` from protocol.proto, not by hand.
export const descriptor = ${JSON.stringify({ nested })}
`,
    DESCRIPTOR_FILE
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await runCommand('Usage: npm run protocol', async (args) => {
    parseArgs({ args: [...args], options: {} })
    writeFileSync(DESCRIPTOR_FILE, protobufDescriptor())
    return 0
  })
