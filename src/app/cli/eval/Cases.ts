/** The file of cases: JSON Lines, or CSV with the same columns. */
import * as fs from "node:fs/promises"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { trimmed } from "../../../domain/Text.ts"
import { CommandFailed } from "../Connection.ts"
import * as Csv from "./Csv.ts"

/** Cases of one file at most. */
const maxCases = 10_000
const maxFileBytes = 64 * 1024 * 1024

const list = Schema.optionalWith(Schema.Array(trimmed(2_000)), { exact: true, default: () => [] })

const Fields = Schema.Struct({
  question: trimmed(32_000),
  expectSources: list,
  expectFacts: list,
  /** Absent: the reply may be either. */
  expectRefusal: Schema.optionalWith(Schema.Boolean, { exact: true })
}).pipe(
  Schema.filter(
    ({ expectRefusal, expectSources }) =>
      expectRefusal !== true ||
      expectSources.length === 0 ||
      "a refusal cites nothing: expectRefusal and expectSources exclude each other"
  )
)

export type Case = typeof Fields.Type & {
  /** Where it stands in the file, from 1. */
  readonly line: number
}

const expected =
  'A line is {"question": "…", "expectSources": ["…"], "expectFacts": ["…"], "expectRefusal": false}, of which only the question is required.'
const expectedColumns =
  "The first line of a CSV file names its columns: question, and any of expectSources, expectFacts (several separated by |) and expectRefusal (true or false)."

/** Bad input: exit code 2. */
export const badInput = (message: string) => new CommandFailed({ message, exitCode: 2 })

const decode = Schema.decodeUnknownEither(Fields, { onExcessProperty: "error" })
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
        ? [Either.left(`line ${place + 1}: is no JSON\n${expected}`)]
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
    const problem = unknown === undefined ? "no column is called question" : `unknown column ${unknown}`
    return Either.left(`line ${header.line}: ${problem}\n${expectedColumns}`)
  }
  return Either.all(
    rows.map(({ fields, line }) => {
      if (fields === null) return Either.left(`line ${line}: a quote is never closed\n${expectedColumns}`)
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
      return Either.left(`holds no case\n${format === "csv" ? expectedColumns : expected}`)
    if (cases.length > maxCases)
      return Either.left(`holds ${cases.length} cases; ${maxCases} are taken at most`)
    return Either.right(cases)
  })
}

/** The text of a file that the command line names; exit code 2 where it cannot be read. */
export const readText = (file: string) =>
  Effect.gen(function* () {
    const unreadable = () => badInput(`${file} cannot be read.`)
    const { size } = yield* Effect.tryPromise({ try: () => fs.stat(file), catch: unreadable })
    if (size > maxFileBytes) return yield* badInput(`${file} is longer than ${maxFileBytes} bytes.`)
    return yield* Effect.tryPromise({ try: () => fs.readFile(file, "utf8"), catch: unreadable })
  })

export const read = (file: string) =>
  Effect.flatMap(readText(file), (text) =>
    Either.match(parse(text, /\.csv$/i.test(file) ? "csv" : "jsonl"), {
      onLeft: (problem) => Effect.fail(badInput(`${file}, ${problem}`)),
      onRight: Effect.succeed
    })
  )
