/** SQL text cut into statements, without its comments: enough of the lexer for what stands in migrations. */

/** What may hold a semicolon that ends nothing. A block comment within a block comment is not known. */
const token =
  /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?<tag>\$(?:[a-z_]\w*)?\$)[\s\S]*?\k<tag>|[\s\S]/giu

const isComment = (text: string) => text.length > 1 && (text.startsWith("--") || text.startsWith("/*"))

/** Cuts at `separator` where it is in no quotes and in no parentheses; parts that hold nothing are left out. */
const cut = (text: string, separator: string): ReadonlyArray<string> => {
  const parts: Array<string> = [""]
  let depth = 0
  for (const [piece] of text.matchAll(token)) {
    if (piece === "(") depth += 1
    if (piece === ")") depth -= 1
    if (piece === separator && depth <= 0) parts.push("")
    else parts.push(`${parts.pop() ?? ""}${isComment(piece) ? " " : piece}`)
  }
  return parts.map((part) => part.trim()).filter((part) => part !== "")
}

/** The statements of a text that many may stand in. */
export const statementsOf = (text: string): ReadonlyArray<string> => cut(text, ";")

/** The parts of a list with commas. */
export const partsOf = (text: string): ReadonlyArray<string> => cut(text, ",")

/** Words of a statement in small letters with single spaces; what stands in quotes stays as it is, or goes. */
export const wordsOf = (statement: string): string => {
  const pieces: Array<string> = []
  for (const [piece] of statement.matchAll(token)) {
    if (isComment(piece)) pieces.push(" ")
    else if (/^\$.*\$/su.test(piece) && piece.length > 1) pieces.push("''")
    else pieces.push(piece.startsWith('"') || piece.startsWith("'") ? piece : piece.toLowerCase())
  }
  return pieces.join("").replaceAll(/\s+/gu, " ").trim()
}
