/** Test cases of an agent: written by hand, imported from files, or made from turns. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { inSlices } from "../../concurrency/InSlices.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import {
  type ImportTestCases,
  maxExpectationLength,
  maxTestCases,
  newTestCaseId,
  type TestCase,
  type TestCaseFields,
  type TestCaseId,
  type TestCaseOrigin
} from "../../domain/agents/TestCase.ts"
import { formatCases, parseSteps } from "../../domain/agents/TestCaseFile.ts"
import type { Citation } from "../../domain/chat/ChatTurn.ts"
import { Conflict, NotFound, ValidationError, invalidField, noSuch, orNoSuch } from "../../domain/Errors.ts"
import type { AgentId, RunId } from "../../domain/Ids.ts"
import { textUri } from "../../readers/Text.ts"
import type { PageRequest } from "../../store/accounts/Tenants.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import { TestCaseStore } from "../../store/agents/TestCases.ts"
import { testCaseFields } from "./ExperimentReports.ts"

const missingRun = () => new NotFound({ message: "The agent has no such turn, or it has not ended." })
const tooManyTestCases = () => new Conflict({ message: `An agent has ${maxTestCases} test cases at most.` })

/** Addresses of cited documents, and source names of those without an address of their own. */
const sourcesOf = (citations: ReadonlyArray<Citation>): ReadonlyArray<string> => [
  ...new Set(
    citations
      .map(({ sourceName, url }) => (url === "" || url === textUri ? sourceName : url).trim())
      .filter((name) => name !== "" && name.length <= maxExpectationLength)
  )
]

export class TestCases extends Effect.Service<TestCases>()("usecases/agents/TestCases", {
  effect: Effect.gen(function* () {
    const store = yield* TestCaseStore
    const agents = yield* AgentStore

    /** Oldest first. */
    const list = Effect.fn("TestCases.list")(function* (
      scope: TenantScope,
      agentId: AgentId,
      page: PageRequest
    ) {
      return yield* store.page(yield* agents.findScope(scope, agentId).pipe(orNoSuch("agent")), page)
    })

    /** All cases, in the file format that `spoke eval` and the import read. */
    const exportAll = Effect.fn("TestCases.exportAll")(function* (scope: TenantScope, agentId: AgentId) {
      const { rows } = yield* list(scope, agentId, { limit: maxTestCases })
      return formatCases(rows.map(testCaseFields))
    })

    /** Stores all cases, or none when the agent would have too many. */
    const insertAll = Effect.fn("TestCases.insertAll")(function* (
      scope: TenantScope,
      agentId: AgentId,
      cases: ReadonlyArray<TestCaseFields>,
      origin: TestCaseOrigin,
      runId: RunId | null = null
    ) {
      const agent = yield* agents.findScope(scope, agentId).pipe(orNoSuch("agent"))
      const ids = yield* Effect.forEach(cases, () => newTestCaseId)
      // Ids of the same millisecond are not ordered.
      const inOrder = ids.toSorted()
      const rows = cases.flatMap((fields, index) => {
        const id = inOrder[index]
        return id === undefined ? [] : [{ id, origin, runId, fields }]
      })
      const made = yield* store.insert(agent, rows)
      if (made === "missing") return yield* missingRun()
      return made.length === cases.length ? made : yield* tooManyTestCases()
    })

    /** Adds the cases of a file: all, or none when the agent would have too many. */
    const add = (scope: TenantScope, agentId: AgentId, fields: ReadonlyArray<TestCaseFields>) =>
      insertAll(scope, agentId, fields, "file")

    const single = (made: ReadonlyArray<TestCase>) => {
      const [first] = made
      return first === undefined ? tooManyTestCases() : Effect.succeed(first)
    }

    const create = (scope: TenantScope, agentId: AgentId, fields: TestCaseFields) =>
      Effect.flatMap(insertAll(scope, agentId, [fields], "written"), single)

    /** Imports all cases of the file or none. VALIDATION_ERROR names the first invalid line. */
    const importFile = Effect.fn("TestCases.importFile")(function* (
      scope: TenantScope,
      agentId: AgentId,
      { format, text }: typeof ImportTestCases.Type
    ) {
      const cases = yield* inSlices(parseSteps(text, format))
      if (Either.isLeft(cases)) {
        return yield* invalidField(["text"], cases.left, "The file cannot be read.")
      }
      return yield* add(scope, agentId, cases.right)
    })

    /**
     * Makes a case from a turn's question, with the sources that its reply cites. When the customer rated the reply as
     * not helpful, its sources are not expected. The customer's comment or a team member's answer becomes the note.
     */
    const fromRun = Effect.fn("TestCases.fromRun")(function* (
      scope: TenantScope,
      agentId: AgentId,
      runId: RunId
    ) {
      const agent = yield* agents.findScope(scope, agentId).pipe(orNoSuch("agent"))
      const asked = yield* store.questionOf(agent, runId)
      if (Option.isNone(asked)) return yield* missingRun()
      const { citations, comment, human, question, rating } = asked.value
      const note = (human ?? comment ?? "").trim().slice(0, maxExpectationLength).trimEnd().toWellFormed()
      const fields: TestCaseFields = {
        question: question.trim(),
        expectSources: rating === -1 ? [] : sourcesOf(citations ?? []),
        expectFacts: [],
        ...(note === "" ? {} : { note })
      }
      if (fields.question === "") {
        return yield* new ValidationError({ message: "The turn has no question in words.", details: {} })
      }
      const origin = human !== null ? "human" : rating === null ? "run" : "feedback"
      return yield* Effect.flatMap(insertAll(scope, agentId, [fields], origin, runId), single)
    })

    /** Replaces all fields but the origin. */
    const update = (scope: TenantScope, id: TestCaseId, fields: TestCaseFields) =>
      store.update(scope, id, fields).pipe(orNoSuch("test case"))

    const remove = Effect.fn("TestCases.remove")(function* (scope: TenantScope, id: TestCaseId) {
      if (!(yield* store.remove(scope, id))) return yield* noSuch("test case")
    })

    return { list, exportAll, add, create, importFile, fromRun, update, remove } as const
  })
}) {}
