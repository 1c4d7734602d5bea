/** Files of cases: JSON Lines, or CSV with the same columns. */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as Csv from "./Csv.ts"
import { TestCaseFields } from "./TestCase.ts"

/** Maximum number of cases of one file. */
const maxCases = 10_000

export type Case = TestCaseFields & {
  /** Its line in the file, from 1. */
  readonly line: number
}

const expected =
  'A line is {"question": "…", "expectSources": ["…"], "expectFacts": ["…"], "expectRefusal": false, "criterion": "…", "note": "…"}, of which only the question is required.'
const expectedColumns =
  "The first line of a CSV file names its columns: question, and any of expectSources, expectFacts (several separated by |), expectRefusal (true or false), criterion and note."

const decode = Schema.decodeUnknownEither(TestCaseFields, { onExcessProperty: "error" })
const decodeJson = Schema.decodeUnknownEither(Schema.parseJson())

type Parsed = Either.Either<ReadonlyArray<Case>, string>

const decoded = (value: unknown, line: number, hint: string): Either.Either<Case, string> =>
  Either.mapBoth(decode(value), {
    onLeft: (error) => {
      const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
      const at = issue === undefined || issue.path.length === 0 ? "" : `${issue.path.join(".")}: `
      return `line ${line}: ${at}${issue?.message ?? "cannot be read"}\n${hint}`
    },
    onRight: (found) => ({ ...found, line })
  })

const jsonLines = (text: string): Parsed =>
  Either.all(
    text.split(/\r\n|\r|\n/).flatMap((line, place) => {
      if (line.trim() === "") return []
      const value = decodeJson(line)
      return Either.isLeft(value)
        ? [Either.left(`line ${place + 1}: not valid JSON\n${expected}`)]
        : [decoded(value.right, place + 1, expected)]
    })
  )

const listOf = (text: string): ReadonlyArray<string> =>
  text
    .split("|")
    .map((part) => part.trim())
    .filter((part) => part !== "")

const yes = /^(?:true|yes|1)$/i
const no = /^(?:false|no|0)$/i

const columns: Readonly<Record<string, (text: string) => unknown>> = {
  question: (text) => text,
  note: (text) => text,
  criterion: (text) => text,
  expectSources: listOf,
  expectFacts: listOf,
  expectRefusal: (text) => (yes.test(text.trim()) ? true : no.test(text.trim()) ? false : text)
}

const csv = (text: string): Parsed => {
  const [header, ...rows] = Csv.records(text)
  if (header === undefined) return Either.right([])
  const names = (header.fields ?? []).map((name) => name.trim())
  const unknown = names.find((name) => columns[name] === undefined)
  if (unknown !== undefined || !names.includes("question")) {
    const problem = unknown === undefined ? "the column question is missing" : `unknown column ${unknown}`
    return Either.left(`line ${header.line}: ${problem}\n${expectedColumns}`)
  }
  return Either.all(
    rows.map(({ fields, line }) => {
      if (fields === null) return Either.left(`line ${line}: a quote is not closed\n${expectedColumns}`)
      if (fields.length > names.length) {
        return Either.left(
          `line ${line}: ${fields.length} fields for ${names.length} columns; a field with a comma needs quotes\n${expectedColumns}`
        )
      }
      const given = names.flatMap((name, place) => {
        const field = fields[place] ?? ""
        return name !== "question" && field.trim() === "" ? [] : [[name, columns[name]?.(field)] as const]
      })
      return decoded(Object.fromEntries(given), line, expectedColumns)
    })
  )
}

/** The cases of `text`, or what is wrong with it, with the number of the line. */
export const parse = (text: string, format: "csv" | "jsonl"): Parsed => {
  const content = text.replace(/^\uFEFF/, "")
  return Either.flatMap(format === "csv" ? csv(content) : jsonLines(content), (cases) => {
    if (cases.length === 0)
      return Either.left(`has no case\n${format === "csv" ? expectedColumns : expected}`)
    if (cases.length > maxCases) return Either.left(`has ${cases.length} cases; the maximum is ${maxCases}`)
    return Either.right(cases)
  })
}

/** `cases` as JSON Lines that {@link parse} reads as the same cases. */
export const formatCases = (cases: ReadonlyArray<TestCaseFields>): string =>
  cases
    .map(({ criterion, expectFacts, expectRefusal, expectSources, note, question }) =>
      JSON.stringify({
        question,
        ...(expectSources.length === 0 ? {} : { expectSources }),
        ...(expectFacts.length === 0 ? {} : { expectFacts }),
        ...(expectRefusal === undefined ? {} : { expectRefusal }),
        ...(criterion === undefined ? {} : { criterion }),
        ...(note === undefined ? {} : { note })
      })
    )
    .map((line) => `${line}\n`)
    .join("")
