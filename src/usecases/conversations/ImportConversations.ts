/** Imports conversations from JSON lines, and returns a report. A line is imported completely or not at all. */
import { createHash } from "node:crypto"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { inSlices } from "../../concurrency/InSlices.ts"
import {
  ImportedConversation,
  type ImportProblem,
  type ImportReport
} from "../../domain/conversations/ConversationImport.ts"
import { type AgentId, ConversationId, EndUserId, MessageId, typeId } from "../../domain/Ids.ts"
import * as Json from "../../domain/Json.ts"
import { ConversationImports, type NewConversation } from "../../store/conversations/ConversationImports.ts"

/**
 * Maximum conversations of one statement, and about the maximum characters. Other requests wait for one statement at
 * most.
 */
const maxBatchConversations = 200
const maxBatchCharacters = 1_000_000
/** Maximum problems that one report lists. */
const maxProblems = 1_000

interface Line {
  readonly number: number
  readonly text: string
}

interface ReadLine {
  readonly line: Line
  readonly conversation: NewConversation
}

const decode = Schema.decodeUnknownEither(ImportedConversation, { errors: "first" })

/** The path and the expectation of an error, without the given value. */
const messageOf = (error: ParseResult.ParseError): string => {
  const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
  if (issue === undefined || issue.path.length === 0) return "Expected a JSON object with messages"
  const expected = issue.message.startsWith("Expected ")
    ? issue.message.replace(/,? actual [\s\S]*$/u, "")
    : ""
  const where = issue.path.map(String).join(".").slice(0, 100)
  return expected === "" ? `${where}: is missing or has the wrong form` : `${where}: ${expected}`
}

const keyOf = ({ id }: ImportedConversation, { text }: Line): string =>
  id === undefined ? `line:${createHash("sha256").update(text).digest("hex")}` : `id:${id}`

/**
 * A conversation in stored form. Messages are sorted by time; those of the same time keep their order. Ids are derived
 * from the times and sorted, so that (time, id) has the same order. No id lies in the future, because it would stay the
 * newest.
 */
const toNewConversation = (
  given: ImportedConversation,
  agentId: AgentId,
  line: Line,
  now: number
): NewConversation => {
  const sorted = given.messages.toSorted(
    (a, b) => DateTime.toEpochMillis(a.createdAt) - DateTime.toEpochMillis(b.createdAt)
  )
  const [first = given.messages[0]] = sorted
  const last = sorted.at(-1) ?? first
  const createdAt = given.createdAt ?? first.createdAt
  const idAt = (prefix: string, at: DateTime.Utc) =>
    typeId(prefix, Math.min(now, Math.max(0, DateTime.toEpochMillis(at))))
  const ids = sorted.map((message) => idAt("msg", message.createdAt)).sort()
  return {
    id: ConversationId.make(idAt("cnv", createdAt)),
    agentId,
    importKey: keyOf(given, line),
    endUserId: EndUserId.make(idAt("usr", createdAt)),
    externalEndUserId: given.externalEndUserId ?? null,
    createdAt,
    updatedAt: DateTime.max(createdAt, last.createdAt),
    messages: sorted.map((message, index) => ({ ...message, id: MessageId.make(ids[index] ?? "") }))
  }
}

/** Splits `lines` into batches for one statement each. */
const batches = (lines: ReadonlyArray<ReadLine>): ReadonlyArray<ReadonlyArray<ReadLine>> => {
  const all: Array<Array<ReadLine>> = []
  let characters = Infinity
  for (const one of lines) {
    const current = all.at(-1)
    characters += one.line.text.length
    if (
      current === undefined ||
      current.length === maxBatchConversations ||
      characters > maxBatchCharacters
    ) {
      all.push([one])
      characters = one.line.text.length
    } else current.push(one)
  }
  return all
}

export class ImportConversations extends Effect.Service<ImportConversations>()(
  "usecases/conversations/ImportConversations",
  {
    effect: Effect.gen(function* () {
      const store = yield* ConversationImports

      /** The conversation of a line, or its problem. */
      const read = (
        line: Line,
        fallback: AgentId | undefined,
        now: number
      ): Either.Either<ReadLine, ImportProblem> => {
        const refused = (message: string) => Either.left({ line: line.number, message })
        const parsed = Json.parse(line.text)
        if (Either.isLeft(parsed)) {
          const { message, reason } = parsed.left
          return refused(
            reason === "malformed" ? "Expected a JSON object with messages" : `Not read: ${message}`
          )
        }
        const decoded = decode(parsed.right)
        if (Either.isLeft(decoded)) return refused(messageOf(decoded.left))
        const agentId = decoded.right.agentId ?? fallback
        if (agentId === undefined) return refused("agentId: Expected the agent, here or for the whole import")
        return Either.right({ line, conversation: toNewConversation(decoded.right, agentId, line, now) })
      }

      /** One line in each step: decoding 16 MiB takes seconds. */
      function* readAll(
        lines: ReadonlyArray<Line>,
        fallback: AgentId | undefined,
        now: number
      ): Generator<void, ReadonlyArray<Either.Either<ReadLine, ImportProblem>>> {
        const all: Array<Either.Either<ReadLine, ImportProblem>> = []
        for (const line of lines) {
          all.push(read(line, fallback, now))
          yield
        }
        return all
      }

      const storeAll = Effect.fn("ImportConversations.storeAll")(function* (lines: ReadonlyArray<ReadLine>) {
        const outcomes = yield* store.insert(lines.map(({ conversation }) => conversation))
        const byId = new Map(outcomes.map((outcome) => [outcome.id, outcome]))
        const withOutcomes = lines.map((one) => ({ ...one, outcome: byId.get(one.conversation.id) }))
        const fresh = withOutcomes.filter(({ outcome }) => outcome?.fresh === true)
        const report: ImportReport = {
          imported: fresh.length,
          messages: fresh.reduce((sum, { conversation }) => sum + conversation.messages.length, 0),
          repeated: withOutcomes.filter(({ outcome }) => outcome?.known === true && !outcome.fresh).length,
          problems: withOutcomes
            .filter(({ outcome }) => outcome?.known !== true)
            .map(({ line }) => ({ line: line.number, message: "agentId: There is no such agent" }))
        }
        return report
      })

      /**
       * Imports every valid line of `text`; empty lines are skipped. Stored conversations stay when the import fails
       * later, and importing them again changes nothing.
       */
      const run = Effect.fn("ImportConversations.run")(function* (
        text: string,
        fallback: AgentId | undefined
      ) {
        const now = yield* Clock.currentTimeMillis
        const given = text
          .split("\n")
          .map((line, index): Line => ({ number: index + 1, text: line.trim() }))
          .filter((line) => line.text !== "")
        const lines = yield* inSlices(readAll(given, fallback, now))
        const reports = yield* Effect.forEach(
          batches(lines.flatMap((one) => (Either.isRight(one) ? [one.right] : []))),
          storeAll
        )
        const problems = [
          ...lines.flatMap((one) => (Either.isLeft(one) ? [one.left] : [])),
          ...reports.flatMap((report) => report.problems)
        ]
        const total = (field: "imported" | "messages" | "repeated") =>
          reports.reduce((sum, report) => sum + report[field], 0)
        const report: ImportReport = {
          imported: total("imported"),
          messages: total("messages"),
          repeated: total("repeated"),
          problems: problems.sort((a, b) => a.line - b.line).slice(0, maxProblems)
        }
        return report
      })

      return { run } as const
    })
  }
) {}
