/** Splits a text into parts that another text has or does not have. */

export interface Piece {
  readonly text: string
  readonly isNew: boolean
}

/** Maximum number of compared words, because the work grows with their product. */
const maxWords = 1_000

const wordsOf = (text: string): ReadonlyArray<string> => text.match(/\s*\S+\s*$|\s*\S+/gu) ?? []

/** By the longest common subsequence of words. If one of the texts is too long, the whole text counts as new. */
export const differing = (text: string, other: string): ReadonlyArray<Piece> => {
  const ours = wordsOf(text)
  const theirs = wordsOf(other).map((word) => word.trim())
  if (ours.length > maxWords || theirs.length > maxWords) return [{ text, isNew: text !== other }]
  const width = theirs.length + 1
  const lengths = new Uint16Array((ours.length + 1) * width)
  const at = (row: number, column: number) => lengths[row * width + column] ?? 0
  for (let row = ours.length - 1; row >= 0; row--) {
    for (let column = theirs.length - 1; column >= 0; column--) {
      lengths[row * width + column] =
        ours[row]?.trim() === theirs[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1))
    }
  }
  const pieces: Array<{ text: string; isNew: boolean }> = []
  const add = (word: string, isNew: boolean) => {
    const last = pieces.at(-1)
    if (last?.isNew === isNew) last.text += word
    else pieces.push({ text: word, isNew })
  }
  let column = 0
  ours.forEach((word, row) => {
    while (
      column < theirs.length &&
      word.trim() !== theirs[column] &&
      at(row, column + 1) === at(row, column)
    )
      column++
    const isSame = word.trim() === theirs[column] && at(row, column) === at(row + 1, column + 1) + 1
    add(word, !isSame)
    if (isSame) column++
  })
  return pieces
}
