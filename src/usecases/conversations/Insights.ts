/** Reports over stored turns, for the dashboard: failed turns grouped by question, and figures over all turns. */
import { createHash } from "node:crypto"
import * as Arr from "effect/Array"
import type * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Embedder } from "../../capabilities/Embedder.ts"
import { inSlices } from "../../concurrency/InSlices.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type {
  InsightGroup,
  MeasuredBy,
  FailureKind,
  FailedTurn
} from "../../domain/conversations/Insights.ts"
import { invalidField, noSuch } from "../../domain/Errors.ts"
import type { AgentId, RunId, SourceId } from "../../domain/Ids.ts"
import { mayBeEnglish } from "../../search/Language.ts"
import * as QuestionGroups from "../../search/QuestionGroups.ts"
import {
  InsightStore,
  maxQuestionLength,
  type ReportScope,
  type FailedTurnRow
} from "../../store/conversations/Insights.ts"
import { Masking } from "../chat/masking/Masking.ts"
import { GroupNames, type UnnamedGroup } from "./GroupNames.ts"
import * as Measures from "./Measures.ts"
import { ReportPermits } from "./ReportPermits.ts"
import { cursorOf, parseCursor, reportTime } from "./ReportTime.ts"

/** Maximum failed turns of a report; the newest are used. */
const maxTurns = 1_000
/** Time for embedding questions in one report; the next report continues. */
const embeddingTimeout = Duration.seconds(20)
const maxExamples = 5
const maxSources = 10
/** Maximum characters of a question that are shown. */
const maxShownLength = 300

/** Parameters of a report. */
export interface ReportRequest {
  readonly agentId?: AgentId | undefined
  readonly from?: DateTime.Utc | undefined
  readonly to?: DateTime.Utc | undefined
}

/** Turns without an answer whose questions are alike. */
export interface UnansweredGroup {
  readonly id: string
  /** The agent of the newest turn. */
  readonly agentId: AgentId
  readonly people: number
  /** Newest first. */
  readonly runIds: ReadonlyArray<RunId>
}

/** A page of groups. `after` is the cursor from the previous page. */
export interface GroupPage {
  readonly limit: number
  readonly after: string | undefined
}

const kindsOf = (row: FailedTurnRow): ReadonlyArray<FailureKind> => [
  ...(row.failed ? (["failed"] as const) : []),
  ...(row.thumbsDown ? (["thumbsDown"] as const) : []),
  ...(row.handedOver ? (["handedOver"] as const) : []),
  ...(row.unanswered ? (["unanswered"] as const) : []),
  ...(row.stopped ? (["stopped"] as const) : [])
]

const shortened = (text: string): string => text.slice(0, maxShownLength).toWellFormed()

const exampleOf = (row: FailedTurnRow): FailedTurn => ({
  runId: row.runId,
  agentId: row.agentId,
  conversationId: row.conversationId,
  question: shortened(row.question),
  at: row.at,
  kind: kindsOf(row)[0] ?? "failed"
})

/** Turns of a group, newest first. */
interface TurnGroup {
  readonly id: string
  readonly title: string
  readonly rows: ReadonlyArray<FailedTurnRow>
}

const idOf = (title: string): string => `grp_${createHash("sha256").update(title).digest("hex").slice(0, 20)}`

const newestFirst = (one: FailedTurnRow, other: FailedTurnRow): number => (one.runId < other.runId ? 1 : -1)

/** The largest group first; of equal ones, the one with the newest turn. */
const ranked = (groups: ReadonlyArray<QuestionGroups.Group<FailedTurnRow>>): ReadonlyArray<TurnGroup> =>
  groups
    .map(({ title, values }): TurnGroup => ({ id: idOf(title), title, rows: values.toSorted(newestFirst) }))
    .toSorted(
      (one, other) =>
        other.rows.length - one.rows.length ||
        ((one.rows[0]?.runId ?? "") < (other.rows[0]?.runId ?? "") ? 1 : -1)
    )

const vectorOf = (bytes: Uint8Array): Float32Array => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Float32Array.from({ length: bytes.byteLength / 4 }, (_, index) => view.getFloat32(index * 4, true))
}

/** Returns the text of a question for the embedder, masked as its agent requires. */
const embeddingTexts = (rows: ReadonlyArray<FailedTurnRow>) => {
  const settings = new Map(
    rows.flatMap(({ masking, question }) => (masking === null ? [] : [[question, masking] as const]))
  )
  return (question: string): string => {
    const masking = settings.get(question)
    return masking === undefined
      ? question.slice(0, maxQuestionLength).toWellFormed()
      : new Masking(masking).searchable(question, maxQuestionLength)
  }
}

/** The group for the model to name, if it has several turns. A single question is its own name. */
const groupToName = (
  { tenantId }: TenantScope,
  { id, rows, title }: TurnGroup
): ReadonlyArray<UnnamedGroup> => {
  const [newest] = rows
  if (newest === undefined || rows.length < 2) return []
  // A group of several agents is named for the agent of the newest turn, from that agent's questions alone.
  const own = rows.filter(({ agentId }) => agentId === newest.agentId).map(({ question }) => question)
  const questions = [...new Set(own.includes(title) ? [title, ...own] : own)]
  return [{ tenantId, agentId: newest.agentId, id, masking: newest.masking, questions }]
}

export class Insights extends Effect.Service<Insights>()("usecases/conversations/Insights", {
  effect: Effect.gen(function* () {
    const store = yield* InsightStore
    const embedder = yield* Embedder
    const { namesOf } = yield* GroupNames
    const { withPermit } = yield* ReportPermits

    /** The time range and the agent of a report. The default is the last 30 days. */
    const scopeOf = Effect.fn("Insights.scopeOf")(function* (scope: TenantScope, request: ReportRequest) {
      const { from, to } = yield* reportTime(request)
      const { agentId } = request
      if (agentId !== undefined && !(yield* store.hasAgent(scope, agentId))) return yield* noSuch("agent")
      const report: ReportScope = { tenantId: scope.tenantId, agentId, from, to }
      return report
    })

    const canEmbed = (text: string): boolean => embedder.englishOnly !== true || mayBeEnglish(text)

    /**
     * Makes missing vectors: each text once, newest first. Each batch is stored before the next. Vectors that fail or
     * time out are made by the next report.
     */
    const embedMissing = Effect.fn("Insights.embedMissing")(function* (
      scope: TenantScope,
      rows: ReadonlyArray<FailedTurnRow>
    ) {
      const vectors = new Map<string, Float32Array>()
      for (const { embedding, question } of rows)
        if (embedding !== null) vectors.set(question, vectorOf(embedding))
      const missing = rows.filter(({ embedding, question }) => embedding === null && canEmbed(question))
      const keep = (texts: ReadonlySet<string>) =>
        store.addVectors(
          scope,
          embedder.profile,
          missing.flatMap(({ question, runId }) => {
            const vector = vectors.get(question)
            return vector === undefined || !texts.has(question) ? [] : [{ runId, vector }]
          })
        )
      const known = new Set(missing.map(({ question }) => question).filter((text) => vectors.has(text)))
      if (known.size > 0) yield* keep(known)
      const texts = [...new Set(missing.map(({ question }) => question))].filter((text) => !vectors.has(text))
      yield* Effect.forEach(
        Arr.chunksOf(texts, embedder.maxBatch),
        (batch) =>
          Effect.flatMap(embedder.embedAll(batch.map(embeddingTexts(missing))), (made) => {
            for (const [index, text] of batch.entries()) {
              const vector = made[index]
              if (vector !== undefined) vectors.set(text, vector)
            }
            return keep(new Set(batch))
          }),
        { discard: true }
      ).pipe(
        Effect.catchTag("EmbedderError", ({ message }) =>
          Effect.logWarning("Questions are grouped by their words alone: they could not be embedded", {
            message
          })
        ),
        Effect.timeoutOption(embeddingTimeout)
      )
      return vectors
    })

    /**
     * Returns a function that counts a group's turns for each source: for the sources that a turn's search found, else,
     * if it is unanswered, for all sources of its agent.
     */
    const searchedIn = Effect.fn("Insights.searchedIn")(function* (
      scope: TenantScope,
      groups: ReadonlyArray<TurnGroup>
    ) {
      const rows = groups.flatMap((group) => group.rows)
      if (rows.length === 0) return () => []
      const found = new Map<RunId, Array<{ readonly id: SourceId; readonly name: string }>>()
      for (const { runId, ...source } of yield* store.searchedSources(
        scope,
        rows.map(({ runId }) => runId)
      ))
        found.set(runId, [...(found.get(runId) ?? []), source])
      const agents = new Set(
        rows.filter(({ runId, unanswered }) => unanswered && !found.has(runId)).map(({ agentId }) => agentId)
      )
      const all = agents.size === 0 ? [] : yield* store.sourcesOf(scope, [...agents])
      return (group: TurnGroup): InsightGroup["sources"] => {
        const counted = new Map<SourceId, InsightGroup["sources"][number]>()
        for (const { agentId, runId, unanswered } of group.rows) {
          const own = unanswered ? all.filter((source) => source.agentId === agentId) : []
          for (const { id, name } of found.get(runId) ?? own)
            counted.set(id, { id, name, times: (counted.get(id)?.times ?? 0) + 1 })
        }
        return [...counted.values()]
          .toSorted((one, other) => other.times - one.times || (one.id < other.id ? -1 : 1))
          .slice(0, maxSources)
      }
    })

    const toInsightGroup = (
      { from, to }: ReportScope,
      { id, rows, title }: TurnGroup,
      sources: InsightGroup["sources"]
    ): InsightGroup => {
      const middle = (from.epochMillis + to.epochMillis) / 2
      const count = (meets: (row: FailedTurnRow) => boolean) => rows.filter(meets).length
      const later = count(({ at }) => at.epochMillis >= middle)
      return {
        id,
        title: shortened(title),
        name: null,
        count: rows.length,
        kinds: {
          unanswered: count(({ unanswered }) => unanswered),
          thumbsDown: count(({ thumbsDown }) => thumbsDown),
          handedOver: count(({ handedOver }) => handedOver),
          stopped: count(({ stopped }) => stopped),
          failed: count(({ failed }) => failed)
        },
        people: new Set(rows.map(({ endUserId }) => endUserId)).size,
        trend: { earlier: rows.length - later, later },
        lastAt: rows[0]?.at ?? to,
        sources,
        examples: rows.slice(0, maxExamples).map(exampleOf)
      }
    }

    /** All groups of the newest {@link maxTurns} failed turns, the largest first. */
    const findGroups = Effect.fn("Insights.findGroups")(function* (report: ReportScope) {
      const read = yield* store.failedTurns(report, embedder.profile, maxTurns + 1)
      const rows = read.slice(0, maxTurns)
      const vectors = yield* embedMissing(report, rows)
      const asked = rows.map((row) => ({
        text: row.question,
        vector: vectors.get(row.question) ?? null,
        value: row
      }))
      return {
        rows,
        vectors,
        isCut: read.length > maxTurns,
        all: ranked(yield* inSlices(QuestionGroups.groupQuestions(asked)))
      }
    })

    /** Groups of the default time range with at least `minTurns` unanswered turns. */
    const unanswered = Effect.fn("Insights.unanswered")(function* (scope: TenantScope, minTurns: number) {
      const { all } = yield* findGroups(yield* Effect.orDie(scopeOf(scope, {})))
      return all.flatMap(({ id, rows }): ReadonlyArray<UnansweredGroup> => {
        const own = rows.filter((row) => row.unanswered)
        const [newest] = own
        if (newest === undefined || own.length < minTurns) return []
        const people = new Set(own.map(({ endUserId }) => endUserId)).size
        return [{ id, agentId: newest.agentId, people, runIds: own.map(({ runId }) => runId) }]
      })
    }, withPermit)

    const pageOf = Effect.fn("Insights.pageOf")(function* (
      scope: TenantScope,
      request: ReportRequest,
      page: GroupPage
    ) {
      const before = page.after === undefined ? null : parseCursor(page.after)
      const report = yield* scopeOf(scope, before === null ? request : { ...request, ...before.time })
      const { all, isCut, rows, vectors } = yield* findGroups(report)
      // When the group that the cursor names is gone, the page is empty.
      const start = before === null ? 0 : all.findIndex(({ id }) => id === before.id) + 1
      const paged = before !== null && start === 0 ? [] : all.slice(start, start + page.limit)
      const last = paged.at(-1)
      const sources = yield* searchedIn(report, paged)
      return {
        from: report.from,
        to: report.to,
        turns: rows.length,
        isCut,
        withoutVector: rows.filter(({ question }) => canEmbed(question) && !vectors.has(question)).length,
        groups: paged.map((group) => toInsightGroup(report, group, sources(group))),
        unnamed: paged.flatMap((group) => groupToName(scope, group)),
        next: last !== undefined && start + paged.length < all.length ? cursorOf(report, last.id) : null
      }
    }, withPermit)

    /**
     * One page of the groups of the newest {@link maxTurns} failed turns, the largest first. Waits for their names
     * without holding a permit.
     */
    const groups = Effect.fn("Insights.groups")(function* (
      scope: TenantScope,
      request: ReportRequest,
      page: GroupPage
    ) {
      const { groups: found, unnamed, ...rest } = yield* pageOf(scope, request, page)
      const names = yield* namesOf(unnamed)
      return { ...rest, groups: found.map((group) => ({ ...group, name: names.get(group.id) ?? null })) }
    })

    /** The newest turns of one agent in a group. NOT_FOUND when the time range has no such group. */
    const turnsOf = Effect.fn("Insights.turnsOf")(function* (
      scope: TenantScope,
      request: ReportRequest,
      id: string
    ) {
      const { all } = yield* findGroups(yield* scopeOf(scope, request))
      const group = all.find((one) => one.id === id)
      if (group === undefined) return yield* noSuch("group")
      // The turn that names the group comes first.
      return group.rows
        .toSorted(
          (one, other) => Number(other.question === group.title) - Number(one.question === group.title)
        )
        .map(({ runId }) => runId)
    }, withPermit)

    /** Outcomes of the turns in the time range, in total and grouped by `by`. */
    const measures = Effect.fn("Insights.measures")(function* (
      scope: TenantScope,
      request: ReportRequest,
      by: MeasuredBy
    ) {
      if (by === "version" && request.agentId === undefined)
        return yield* invalidField(
          ["agentId"],
          "Expected the id of an agent",
          "Versions are those of one agent. Name it by agentId."
        )
      const report = yield* scopeOf(scope, request)
      return Measures.reportOf(report, by, yield* store.measures(report, by))
    }, withPermit)

    return { unanswered, groups, turnsOf, measures } as const
  }),
  dependencies: [GroupNames.Default, ReportPermits.Default]
}) {}
