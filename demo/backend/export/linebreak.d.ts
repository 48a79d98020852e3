/** The part that is used of a package without types. */
declare module 'linebreak' {
  // The package has a default export only.
  // biome-ignore lint/style/noDefaultExport: see above
  export default class LineBreaker {
    constructor(text: string)
    /** The next position after which a line may end; null at the end. */
    nextBreak(): { readonly position: number; readonly required: boolean } | null
  }
}
