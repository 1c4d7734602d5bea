/** The statements of a reply that its citation marks refer to. */
import { sentencesOf, type Span } from "../../../domain/Sentences.ts"
import { MarkScanner } from "./Marks.ts"

export interface MarkedClaim {
  /** `reply.slice(start, end)`, in UTF-16 units: the sentence, or the part of it that ends with the marks. */
  readonly start: number
  readonly end: number
  /** The statement without its marks. */
  readonly text: string
  /** Numbers of its citations, in order and without duplicates. */
  readonly numbers: ReadonlyArray<number>
}

/** Maximum statements of one reply that are checked. */
const maxClaims = 64
/** Minimum words of a part of a sentence that is checked on its own. */
const minWords = 3

interface Mark {
  readonly start: number
  readonly end: number
  readonly number: number
}

const marksOf = (reply: string, numbers: ReadonlySet<number>): ReadonlyArray<Mark> => {
  const scanner = new MarkScanner(numbers, { removesOthers: false })
  const marks: Array<Mark> = []
  let offset = 0
  for (const piece of [...scanner.push(reply), ...scanner.flush()]) {
    const length = piece._tag === "Text" ? piece.text.length : `[${piece.number}]`.length
    if (piece._tag === "Mark") marks.push({ start: offset, end: offset + length, number: piece.number })
    offset += length
  }
  return marks
}

/** Groups marks with nothing but blanks between them: they refer to one statement. */
const groupsOf = (reply: string, marks: ReadonlyArray<Mark>): ReadonlyArray<ReadonlyArray<Mark>> => {
  const groups: Array<Array<Mark>> = []
  for (const mark of marks) {
    const group = groups.at(-1)
    const before = group?.at(-1)
    if (group !== undefined && before !== undefined && /^[\s,;]*$/u.test(reply.slice(before.end, mark.start)))
      group.push(mark)
    else groups.push([mark])
  }
  return groups
}

const wordCount = (text: string): number => text.match(/\p{Script=Han}|[\p{L}\p{M}\p{N}]+/gu)?.length ?? 0

/** `reply.slice(start, end)` without `marks`, which are the marks in it. */
const textOutsideMarks = (reply: string, { end, start }: Span, marks: ReadonlyArray<Mark>): string => {
  let text = ""
  let at = start
  for (const mark of marks) {
    if (mark.end <= start || mark.start >= end) continue
    text += reply.slice(at, mark.start)
    at = mark.end
  }
  return (text + reply.slice(at, end)).replaceAll(/[ \t]{1,8}(?=[.,;:!?。！？।॥۔؟]|$)/gu, "").trim()
}

/** The first {@link maxClaims} statements, in order. */
export const claimsOf = (reply: string, numbers: ReadonlySet<number>): ReadonlyArray<MarkedClaim> => {
  const marks = marksOf(reply, numbers)
  const claims: Array<MarkedClaim> = []
  const add = (span: Span, own: ReadonlyArray<Mark>, group: ReadonlyArray<Mark>) => {
    const text = textOutsideMarks(reply, span, own)
    if (wordCount(text) === 0) return
    claims.push({
      start: span.start,
      end: span.end,
      text,
      numbers: [...new Set(group.map(({ number }) => number))]
    })
  }
  let index = 0
  let before: { readonly span: Span; readonly own: ReadonlyArray<Mark> } | undefined
  for (const sentence of sentencesOf(reply)) {
    const own: Array<Mark> = []
    for (let mark = marks[index]; mark !== undefined && mark.start < sentence.end; mark = marks[++index])
      own.push(mark)
    const groups = groupsOf(reply, own)
    if (wordCount(textOutsideMarks(reply, sentence, own)) > 0) {
      before = { span: sentence, own }
      let start = sentence.start
      for (const [at, group] of groups.entries()) {
        while (start < sentence.end && /\s/u.test(reply.charAt(start))) start++
        const end = at === groups.length - 1 ? sentence.end : (group.at(-1)?.end ?? sentence.end)
        const part = { start, end }
        const isPart = groups.length > 1 && wordCount(textOutsideMarks(reply, part, own)) >= minWords
        add(isPart ? part : sentence, own, group)
        start = end
        if (claims.length >= maxClaims) break
      }
    } else if (before !== undefined) {
      // Marks on a line of their own refer to the sentence before them.
      for (const group of groups.slice(0, maxClaims)) add(before.span, before.own, group)
    }
    if (claims.length >= maxClaims || index >= marks.length) break
  }
  return claims.slice(0, maxClaims)
}
