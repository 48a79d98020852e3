import { execFileSync } from 'node:child_process'

/**
 * Puts this process under a real limit of the operating system, for root too: the write that crosses it is cut short,
 * and the next one is refused with EFBIG. Assertions belong after it, since a runner's output may be a file as well.
 */
export const withFileSizeLimit = async <T>(bytes: number, act: () => Promise<T>): Promise<T> => {
  // Node ignores the signal that comes with a refused write; the runner ends the process by it unless we listen too.
  process.on('SIGXFSZ', ignore)
  limit(String(bytes))
  try {
    return await act()
  } finally {
    limit('unlimited')
    process.off('SIGXFSZ', ignore)
  }
}

const limit = (bytes: string): void => {
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`])
}

const ignore = (): void => undefined
