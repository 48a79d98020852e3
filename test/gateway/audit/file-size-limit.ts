import { execFileSync } from 'node:child_process'

// A rejected write also raises this signal, which arrives later. Without a listener the test runner ends the process.
process.on('SIGXFSZ', () => undefined)

/**
 * Runs `act` under a file size limit of the operating system, which holds for root too: the write that crosses it is cut
 * short, and the next one fails with EFBIG. Assert afterwards, because the output of the test runner may be a file too.
 */
export const withFileSizeLimit = async <T>(bytes: number, act: () => Promise<T>): Promise<T> => {
  setLimit(String(bytes))
  try {
    return await act()
  } finally {
    setLimit('unlimited')
  }
}

const setLimit = (bytes: string): void => {
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`])
}
