#!/usr/bin/env node
/** The `gatehouse` command. docs/reference/commands.md describes the exit codes. */
import { runCli } from './cli.js'

const exitCode = await runCli(process.argv.slice(2), {
  // The programs, their workers and other children read it too.
  env: process.env,
  print: (text) => {
    process.stdout.write(`${text}\n`)
  },
  printErrors: (lines) => {
    process.stderr.write(lines.map((line) => `${line}\n`).join(''))
  }
})
if (exitCode !== null) process.exitCode = exitCode
