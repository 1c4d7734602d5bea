/**
 * Finds the marks `[1]`, `[2]` in a text that comes in pieces. Text that may begin a mark is held back. Code has no
 * marks. The result does not depend on how the text is split into pieces.
 */

export type Piece =
  | { readonly _tag: "Text"; readonly text: string }
  /** `[number]` at this place in the text. */
  | { readonly _tag: "Mark"; readonly number: number }

/** Maximum characters of a mark or a list of marks, such as `[1, 2]`. */
const maxMarkLength = 24
/** Maximum blanks before a mark that are removed with it. */
const maxBlanks = 64

/** Tracks, character by character, whether a text is inside Markdown code. */
class CodeState {
  /** The open code fence: its character and its length. */
  private fence: { readonly sign: string; readonly length: number } | null = null
  /** Number of backticks that opened inline code; 0 outside of it. */
  private inline = 0
  private isLineBlank = true
  private run = { sign: "", length: 0, isFirst: false }

  read(character: string): void {
    if (character === "`" || character === "~") {
      if (character !== this.run.sign) this.settle()
      const { isFirst, length } = this.run
      this.run = { sign: character, length: length + 1, isFirst: length === 0 ? this.isLineBlank : isFirst }
      this.isLineBlank = false
      return
    }
    this.settle()
    if (character === "\n") {
      this.inline = 0
      this.isLineBlank = true
    } else if (character !== " " && character !== "\t") this.isLineBlank = false
  }

  /** True when the next character is inside code, unless it is a backtick or a tilde. */
  isCode(): boolean {
    this.settle()
    return this.fence !== null || this.inline > 0
  }

  private settle(): void {
    const { isFirst, length, sign } = this.run
    if (length === 0) return
    this.run = { sign: "", length: 0, isFirst: false }
    if (this.fence !== null) {
      if (isFirst && sign === this.fence.sign && length >= this.fence.length) this.fence = null
    } else if (isFirst && length >= 3) this.fence = { sign, length }
    else if (sign === "`" && this.inline === 0) this.inline = length
    else if (sign === "`" && this.inline === length) this.inline = 0
  }
}

/** `numbers` are the valid marks. With `removesOthers` every other mark is removed, with the blank before it. */
export class MarkScanner {
  private readonly numbers: ReadonlySet<number>
  private readonly removesOthers: boolean
  private readonly code = new CodeState()
  /** Incomplete marks, nested, the innermost last, and the blanks before them. */
  private open: Array<string> = []
  private blanks = ""
  /** True right after a mark was removed. */
  private wasRemoved = false
  /** The mark that was just removed, until the next character shows whether it is the text of a link. */
  private removedMark: string | null = null
  private last = "\n"
  private pieces: Array<Piece> = []
  private text = ""

  constructor(numbers: ReadonlySet<number>, { removesOthers }: { readonly removesOthers: boolean }) {
    this.numbers = numbers
    this.removesOthers = removesOthers
  }

  /** The text that is final after `delta`. */
  push(delta: string): ReadonlyArray<Piece> {
    for (let index = 0; index < delta.length; index++) this.read(delta.charAt(index))
    return this.takePieces()
  }

  /** The text held back, at the end of the text. */
  flush(): ReadonlyArray<Piece> {
    if (this.wasRemoved) this.blanks = ""
    this.release()
    return this.takePieces()
  }

  private takePieces(): ReadonlyArray<Piece> {
    if (this.text !== "") this.pieces.push({ _tag: "Text", text: this.text })
    this.text = ""
    const { pieces } = this
    this.pieces = []
    return pieces
  }

  private show(text: string): void {
    if (text === "") return
    for (let index = 0; index < text.length; index++) this.code.read(text.charAt(index))
    this.text += text
    this.last = text.charAt(text.length - 1)
    this.wasRemoved = false
  }

  private mark(number: number): void {
    if (this.text !== "") this.pieces.push({ _tag: "Text", text: this.text })
    this.text = ""
    this.pieces.push({ _tag: "Mark", number })
    this.code.read("]")
    this.last = "]"
    this.wasRemoved = false
  }

  /** Emits what was held back. */
  private release(): void {
    const { blanks, open } = this
    this.blanks = ""
    this.open = []
    this.show(blanks + open.join(""))
  }

  private read(character: string): void {
    const text = this.removedMark
    this.removedMark = null
    if (text !== null && character === "(") {
      this.release()
      return this.show(`${text}](`)
    }
    const top = this.open.at(-1)
    if (top !== undefined && character === "]") return this.close(top)
    if (top !== undefined && continues(top, character)) {
      this.open[this.open.length - 1] = top + character
      return
    }
    if (character === "[" && !this.code.isCode()) {
      this.open.push(character)
      return
    }
    if (top === undefined && (character === " " || character === "\t")) return this.readBlank(character)
    if (this.wasRemoved && this.open.length === 0) this.resume(character)
    this.release()
    this.show(character)
  }

  private readBlank(character: string): void {
    // Of the blanks on both sides of a removed mark, those before it stay.
    if (this.wasRemoved && (this.blanks !== "" || this.last === "\n")) return
    this.blanks += character
    if (this.blanks.length > maxBlanks) this.release()
  }

  /** Continues the text with `next` after a removed mark. */
  private resume(next: string): void {
    if (/[\s.,;:!?)\]}。，；：！？、]/u.test(next)) this.blanks = ""
    // Without a blank, the two would become one token.
    else if (/[`~]/u.test(next) && this.last === next && this.blanks === "") this.blanks = " "
  }

  private close(top: string): void {
    const found = top
      .slice(1)
      .split(",")
      .map((part) => part.trim())
    const numbers = found.filter((part) => /^\d{1,3}$/u.test(part)).map(Number)
    const isMark = numbers.length === found.length
    const isKnown = numbers.every((number) => this.numbers.has(number))
    const isAlone = numbers.length === 1
    if (isMark && isKnown && (isAlone || this.removesOthers)) {
      this.open.pop()
      this.release()
      for (const number of numbers) this.mark(number)
      return
    }
    if (isMark && isAlone && this.removesOthers) {
      this.open.pop()
      this.wasRemoved = true
      this.removedMark = top
      return
    }
    this.release()
    this.show("]")
  }
}

const continues = (open: string, character: string): boolean =>
  open.length < maxMarkLength &&
  (/\d/u.test(character) || (open.length > 1 && (character === "," || character === " ")))

/** `text` without any marks. */
export const withoutMarks = (text: string): string => {
  const scanner = new MarkScanner(new Set(), { removesOthers: true })
  return [...scanner.push(text), ...scanner.flush()]
    .map((piece) => (piece._tag === "Text" ? piece.text : `[${piece.number}]`))
    .join("")
}
