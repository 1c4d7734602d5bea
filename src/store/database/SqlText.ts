/** Splits SQL text into statements, without comments. It implements as much of the lexer as migrations need. */

/** Tokens that may contain a semicolon that does not end a statement. Nested block comments are not supported. */
const token =
  /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?<tag>\$(?:[a-z_]\w*)?\$)[\s\S]*?\k<tag>|[\s\S]/giu

const isComment = (text: string) => text.length > 1 && (text.startsWith("--") || text.startsWith("/*"))

/** Splits at `separator` outside quotes and parentheses. Empty parts are dropped. */
const splitOutsideQuotes = (text: string, separator: string): ReadonlyArray<string> => {
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

/** The statements of a text. */
export const statementsOf = (text: string): ReadonlyArray<string> => splitOutsideQuotes(text, ";")

/** The parts of a comma-separated list. */
export const partsOf = (text: string): ReadonlyArray<string> => splitOutsideQuotes(text, ",")

/**
 * The words of a statement in lower case with single spaces. Quoted names and texts are kept, dollar-quoted bodies
 * become empty.
 */
export const wordsOf = (statement: string): string => {
  const pieces: Array<string> = []
  for (const [piece] of statement.matchAll(token)) {
    if (isComment(piece)) pieces.push(" ")
    else if (/^\$.*\$/su.test(piece) && piece.length > 1) pieces.push("''")
    else pieces.push(piece.startsWith('"') || piece.startsWith("'") ? piece : piece.toLowerCase())
  }
  return pieces.join("").replaceAll(/\s+/gu, " ").trim()
}
