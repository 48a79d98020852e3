/** Runs the compiled test files in its arguments one after the other in this process and prints their TAP. */

// tap makes the names of its temporary folders of all arguments, which would be too long.
const files = process.argv.splice(2)
const { runTestFile } = await import('./file-test.js')

for (const file of files) {
  process.send?.({ file })
  await runTestFile(file)
}
