/** "currentFloorId" becomes "current floor", "isFirstAider" "first aider". */
export const wordsOf = (field: string): string =>
  field
    .replace(/^is(?=[A-Z])|Id$/g, '')
    .replace(/[_A-Z]/g, (letter) => (letter === '_' ? ' ' : ` ${letter.toLowerCase()}`))
    .trim()
