/** Files of cases: JSON Lines, or CSV with the same columns. JSON Lines may also have samples of OpenAI Evals. */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { parse as parseJson } from "../Json.ts"
import * as Csv from "./Csv.ts"
import { caseOfSample, isSample } from "./EvalSample.ts"
import { isList } from "../JsonValue.ts"
import { TestCaseFields } from "./TestCase.ts"

/** Maximum number of cases of one file. */
const maxCases = 10_000

export type Case = TestCaseFields & {
  /** Its line in the file, from 1. */
  readonly line: number
}

const expected =
  'A line is {"question": "…", "expectSources": ["…"], "expectFacts": ["…"], "expectRefusal": false, "expectGrounding": true, "responseSchema": {"type": "object"}, "criterion": "…", "note": "…"}, of which only the question is required.'
const expectedColumns =
  "The first line of a CSV file names its columns: question, and any of expectSources, expectFacts (several separated by |), expectRefusal and expectGrounding (true or false), responseSchema (as JSON), criterion and note."

const decode = Schema.decodeUnknownEither(TestCaseFields, { onExcessProperty: "error" })

/** Maximum characters of a problem that are shown: it quotes the invalid value. */
const maxProblemLength = 300

type Parsed = Either.Either<ReadonlyArray<Case>, string>

const decoded = (value: unknown, line: number, hint: string): Either.Either<Case, string> =>
  Either.mapBoth(decode(value), {
    onLeft: (error) => {
      const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
      const at = issue === undefined || issue.path.length === 0 ? "" : `${issue.path.join(".")}: `
      const problem = `${at}${issue?.message ?? "cannot be read"}`
      return `line ${line}: ${problem.slice(0, maxProblemLength).toWellFormed()}\n${hint}`
    },
    onRight: (found) => ({ ...found, line })
  })

const refused = (line: number, problem: string): Either.Either<Case, string> =>
  Either.left(`line ${line}: ${problem}\n${expected}`)

const jsonLines = (text: string): Parsed =>
  Either.all(
    text.split(/\r\n|\r|\n/).flatMap((line, place) => {
      if (line.trim() === "") return []
      const value = parseJson(line)
      if (Either.isLeft(value)) return [refused(place + 1, value.left.message)]
      const isObject = typeof value.right === "object" && value.right !== null && !isList(value.right)
      if (!isObject) return [refused(place + 1, "it is no object")]
      if (!isSample(value.right)) return [decoded(value.right, place + 1, expected)]
      return [
        Either.match(caseOfSample(value.right), {
          onLeft: (problem) => refused(place + 1, problem),
          onRight: (fields) => decoded(fields, place + 1, expected)
        })
      ]
    })
  )

const listOf = (text: string): ReadonlyArray<string> =>
  text
    .split("|")
    .map((part) => part.trim())
    .filter((part) => part !== "")

const yes = /^(?:true|yes|1)$/i
const no = /^(?:false|no|0)$/i

/** Any other text is refused when it is decoded. */
const booleanOf = (text: string): unknown =>
  yes.test(text.trim()) ? true : no.test(text.trim()) ? false : text

const columns = new Map<string, (text: string) => unknown>([
  ["question", (text) => text],
  ["note", (text) => text],
  ["criterion", (text) => text],
  ["expectSources", listOf],
  ["expectFacts", listOf],
  ["expectRefusal", booleanOf],
  ["expectGrounding", booleanOf],
  // A text that is no JSON is refused when it is decoded.
  ["responseSchema", (text) => Either.getOrElse(parseJson(text), () => text)]
])

/** The problem of the names of the columns; undefined where there is none. */
const columnProblem = (names: ReadonlyArray<string>): string | undefined => {
  const unknown = names.find((name) => !columns.has(name))
  if (unknown !== undefined) return `unknown column ${unknown}`
  const repeated = names.find((name, place) => names.indexOf(name) < place)
  if (repeated !== undefined) return `the column ${repeated} is there twice`
  return names.includes("question") ? undefined : "the column question is missing"
}

const csv = (text: string): Parsed => {
  const [header, ...rows] = Csv.records(text)
  if (header === undefined) return Either.right([])
  const names = (header.fields ?? []).map((name) => name.trim())
  const problem = columnProblem(names)
  if (problem !== undefined) return Either.left(`line ${header.line}: ${problem}\n${expectedColumns}`)
  return Either.all(
    rows.map(({ fields, line }) => {
      if (fields === null) return Either.left(`line ${line}: a quote is not closed\n${expectedColumns}`)
      if (fields.length > names.length) {
        return Either.left(
          `line ${line}: ${fields.length} fields for ${names.length} columns; a field with the separator in it needs quotes\n${expectedColumns}`
        )
      }
      const given = names.flatMap((name, place) => {
        const field = fields[place] ?? ""
        return name !== "question" && field.trim() === "" ? [] : [[name, columns.get(name)?.(field)] as const]
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
    .map((fields) => {
      const { criterion, expectFacts, expectGrounding, expectRefusal, expectSources } = fields
      const { note, question, responseSchema } = fields
      return JSON.stringify({
        question,
        ...(expectSources.length === 0 ? {} : { expectSources }),
        ...(expectFacts.length === 0 ? {} : { expectFacts }),
        ...(expectRefusal === undefined ? {} : { expectRefusal }),
        ...(expectGrounding === undefined ? {} : { expectGrounding }),
        ...(responseSchema === undefined ? {} : { responseSchema }),
        ...(criterion === undefined ? {} : { criterion }),
        ...(note === undefined ? {} : { note })
      })
    })
    .map((line) => `${line}\n`)
    .join("")
