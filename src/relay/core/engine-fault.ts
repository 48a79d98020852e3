/**
 * The engine could not do what it was asked for, and has said so wherever it says such things. Whoever asked is told to try
 * again later; nobody logs it a second time.
 */
export class EngineFault extends Error {
  override readonly name: string = 'EngineFault'
}
