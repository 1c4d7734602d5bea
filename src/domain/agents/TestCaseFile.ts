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

type ReadCase = Either.Either<Case, string>

/** The cases of `read`, in order, or the first problem. Reading stops after `max` cases. */
function* collectCases(max: number, read: Iterable<ReadCase>): Generator<void, Parsed> {
  const cases: Array<Case> = []
  for (const one of read) {
    if (Either.isLeft(one)) return Either.left(one.left)
    if (cases.length === max) return Either.left(`has more than ${max} cases`)
    cases.push(one.right)
    yield
  }
  return Either.right(cases)
}

function* jsonLines(text: string): Generator<ReadCase, void, void> {
  for (const [place, line] of text.split(/\r\n|\r|\n/).entries()) {
    if (line.trim() === "") continue
    yield caseOfLine(line, place + 1)
  }
}

const caseOfLine = (line: string, number: number): ReadCase => {
  const value = parseJson(line)
  if (Either.isLeft(value)) return refused(number, value.left.message)
  const isObject = typeof value.right === "object" && value.right !== null && !isList(value.right)
  if (!isObject) return refused(number, "it is no object")
  if (!isSample(value.right)) return decoded(value.right, number, expected)
  return Either.match(caseOfSample(value.right), {
    onLeft: (problem) => refused(number, problem),
    onRight: (fields) => decoded(fields, number, expected)
  })
}

/** Limits the work for a cell. It is more than a case may have, so that decoding refuses such a cell. */
const maxParts = 1_000

const listOf = (text: string): ReadonlyArray<string> =>
  text
    .split("|", maxParts)
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

/** What is wrong with the names of the columns; undefined if nothing is. */
const columnProblem = (names: ReadonlyArray<string>): string | undefined => {
  const unknown = names.find((name) => !columns.has(name))
  if (unknown !== undefined) return `unknown column ${unknown}`
  const repeated = names.find((name, place) => names.indexOf(name) < place)
  if (repeated !== undefined) return `the column ${repeated} is there twice`
  return names.includes("question") ? undefined : "the column question is missing"
}

function* csv(text: string): Generator<ReadCase, void, void> {
  const records = Csv.records(text)
  const first = records.next()
  if (first.done === true) return
  const header = first.value
  const names = (header.fields ?? []).map((name) => name.trim())
  const problem = columnProblem(names)
  if (problem !== undefined) return yield Either.left(`line ${header.line}: ${problem}\n${expectedColumns}`)
  for (const { fields, line } of records) {
    if (fields === null) return yield Either.left(`line ${line}: a quote is not closed\n${expectedColumns}`)
    if (fields.length > names.length) {
      return yield Either.left(
        `line ${line}: ${fields.length} fields for ${names.length} columns; a field with the separator in it needs quotes\n${expectedColumns}`
      )
    }
    const given = names.flatMap((name, place) => {
      const field = fields[place] ?? ""
      return name !== "question" && field.trim() === "" ? [] : [[name, columns.get(name)?.(field)] as const]
    })
    yield decoded(Object.fromEntries(given), line, expectedColumns)
  }
}

/** Reads one case of `text` in each step. Returns all cases, or the first problem with the number of its line. */
export function* parseSteps(text: string, format: "csv" | "jsonl"): Generator<void, Parsed> {
  const content = text.replace(/^\uFEFF/, "")
  const parsed = yield* collectCases(maxCases, format === "csv" ? csv(content) : jsonLines(content))
  return Either.filterOrLeft(
    parsed,
    (cases) => cases.length > 0,
    () => `no case found\n${format === "csv" ? expectedColumns : expected}`
  )
}

/** {@link parseSteps} in one step. */
export const parse = (text: string, format: "csv" | "jsonl"): Parsed => {
  const steps = parseSteps(text, format)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
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
