/** Word diff: splits a text into parts that another text has or does not have. */

export interface DiffPart {
  readonly text: string
  readonly isNew: boolean
}

/** Maximum number of compared words, because the work grows with their product. */
const maxWords = 1_000

const wordsOf = (text: string): ReadonlyArray<string> => text.match(/\s*\S+\s*$|\s*\S+/gu) ?? []

/** Compares the words by their longest common subsequence. If one of the texts is too long, all of `text` is new. */
export const diffWords = (text: string, other: string): ReadonlyArray<DiffPart> => {
  const textWords = wordsOf(text)
  const otherWords = wordsOf(other).map((word) => word.trim())
  if (textWords.length > maxWords || otherWords.length > maxWords) return [{ text, isNew: text !== other }]
  const width = otherWords.length + 1
  const lengths = new Uint16Array((textWords.length + 1) * width)
  const at = (row: number, column: number) => lengths[row * width + column] ?? 0
  for (let row = textWords.length - 1; row >= 0; row--) {
    for (let column = otherWords.length - 1; column >= 0; column--) {
      lengths[row * width + column] =
        textWords[row]?.trim() === otherWords[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1))
    }
  }
  const parts: Array<{ text: string; isNew: boolean }> = []
  const add = (word: string, isNew: boolean) => {
    const last = parts.at(-1)
    if (last?.isNew === isNew) last.text += word
    else parts.push({ text: word, isNew })
  }
  let column = 0
  textWords.forEach((word, row) => {
    while (
      column < otherWords.length &&
      word.trim() !== otherWords[column] &&
      at(row, column + 1) === at(row, column)
    )
      column++
    const isSame = word.trim() === otherWords[column] && at(row, column) === at(row + 1, column + 1) + 1
    add(word, !isSame)
    if (isSame) column++
  })
  return parts
}
