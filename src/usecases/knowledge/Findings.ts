/**
 * Finds passages that contradict or repeat each other, and old pages that do not help. A background fiber compares a
 * few passages at a time. Each batch is a transaction of its own, so that work continues after a restart. Tenants take
 * turns.
 */
import { createHash } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { yieldToEventLoop } from "../../concurrency/YieldToEventLoop.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { orNoSuch } from "../../domain/Errors.ts"
import type { AgentId } from "../../domain/Ids.ts"
import type { FindingId, FindingKind, FindingReason } from "../../domain/knowledge/Finding.ts"
import { pageBy } from "../../domain/Page.ts"
import * as Statements from "../../search/Statements.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import { FindingStore, type NewFinding, type ScannedChunk } from "../../store/knowledge/Findings.ts"
import type { Scan } from "../../store/knowledge/PassageScans.ts"

/** Passages that one transaction compares. */
const batchSize = 5
/** Transactions of one sweep. */
const maxBatches = 60
const maxNeighbours = 30
/** A passage repeats another one when it contains at least this share of the statements of the shorter of the two. */
const minRepeatedShare = 0.8
const minStatements = 2
/** Maximum documents with the same statement and other values. More of them are a template, such as product pages. */
const maxVariants = 3
/** Sorts after every chunk id. */
const afterAllChunks = "zzzz"

const idOf = (kind: FindingKind, ...parts: ReadonlyArray<string>): FindingId =>
  `fnd_${createHash("sha256")
    .update([kind, ...parts].join("\n"))
    .digest("hex")
    .slice(0, 26)}`

interface ChunkStatements {
  readonly chunk: ScannedChunk
  readonly statements: ReadonlyArray<Statements.Statement>
}

const withStatements = (chunk: ScannedChunk): ChunkStatements => ({
  chunk,
  statements: Statements.statementsOf(chunk.content)
})

interface Contradiction {
  readonly chunk: ScannedChunk
  readonly statement: Statements.Statement
  readonly reasons: ReadonlyArray<Statements.Disagreement>
  readonly similarity: number
}

/** Contradictions of one statement, at most one per passage. */
const contradictionsWith = (
  statement: Statements.Statement,
  others: ReadonlyArray<ChunkStatements>
): ReadonlyArray<Contradiction> =>
  others.flatMap(({ chunk, statements }) => {
    // A passage that also contains the same statement does not contradict it.
    if (statements.some((other) => Statements.isSame(statement, other))) return []
    const found = statements.flatMap((other): ReadonlyArray<Contradiction> => {
      const reasons = Statements.disagreements(statement, other)
      return reasons.length === 0
        ? []
        : [{ chunk, statement: other, reasons, similarity: Statements.similarity(statement, other) }]
    })
    return found.toSorted((one, other) => other.similarity - one.similarity).slice(0, 1)
  })

const contradictionsOf = (
  { chunk, statements }: ChunkStatements,
  others: ReadonlyArray<ChunkStatements>
): ReadonlyArray<NewFinding> =>
  statements.flatMap((statement) => {
    const found = contradictionsWith(statement, others)
    if (new Set(found.map((one) => one.chunk.documentId)).size > maxVariants) return []
    return found.map(({ chunk: otherChunk, reasons, similarity, statement: other }) => {
      const pair = [`${chunk.id} ${statement.text}`, `${otherChunk.id} ${other.text}`].toSorted()
      return {
        id: idOf("contradiction", ...pair),
        kind: "contradiction" as const,
        chunkId: chunk.id,
        otherChunkId: otherChunk.id,
        said: statement.text,
        otherSaid: other.text,
        reasons,
        weight: 1 + similarity
      }
    })
  })

const isRepeated = (statement: Statements.Statement, statements: ReadonlyArray<Statements.Statement>) =>
  statements.some((other) => Statements.isSame(statement, other))

const duplicatesOf = (
  one: ChunkStatements,
  others: ReadonlyArray<ChunkStatements>
): ReadonlyArray<NewFinding> =>
  others.flatMap((other) => {
    const [less, more] = one.statements.length <= other.statements.length ? [one, other] : [other, one]
    if (less.statements.length < minStatements) return []
    const common = less.statements.filter((statement) => isRepeated(statement, more.statements)).length
    const share = common / less.statements.length
    if (share < minRepeatedShare) return []
    return [
      {
        id: idOf("duplicate", ...[one.chunk.id, other.chunk.id].toSorted()),
        kind: "duplicate" as const,
        chunkId: one.chunk.id,
        otherChunkId: other.chunk.id,
        said: null,
        otherSaid: null,
        reasons: [{ kind: "same" as const, share }],
        weight: share
      }
    ]
  })

/** The cursor of an item: its weight, by which the list is sorted, and its id. */
const cursorOf = ({ id, weight }: { readonly weight: number; readonly id: string }): string =>
  `${weight} ${id}`
const parseCursor = (after: string) => {
  const [weight = "", id = ""] = after.split(" ")
  return { weight: Number(weight), id }
}

export class Findings extends Effect.Service<Findings>()("usecases/knowledge/Findings", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* FindingStore
    const agents = yield* AgentStore

    const compare = Effect.fn("Findings.compare")(function* (scope: AgentScope, chunk: ScannedChunk) {
      const own = withStatements(chunk)
      const anchors = own.statements.map(Statements.indexKeysOf)
      const all = [...new Set(anchors.flat())]
      const neighbours = all.length === 0 ? [] : yield* store.neighbours(scope, chunk, all, maxNeighbours)
      const others = neighbours.map(withStatements)
      yield* yieldToEventLoop
      yield* store.keep(scope, [...contradictionsOf(own, others), ...duplicatesOf(own, others)])
      yield* store.keepStatements(
        scope,
        anchors.flatMap((found, place) => found.map((anchor) => ({ chunkId: chunk.id, place, anchor })))
      )
    })

    const findStale = Effect.fn("Findings.findStale")(function* (scope: AgentScope) {
      const found = yield* store.stale(scope, yield* DateTime.now)
      yield* store.keepStale(
        scope,
        found.map(({ chunkId, days, documentId, thumbsDown, thumbsUp }) => {
          const reason: FindingReason = { kind: "unchanged", days, thumbsUp, thumbsDown }
          return {
            id: idOf("stale", documentId),
            kind: "stale" as const,
            chunkId,
            otherChunkId: null,
            said: null,
            otherSaid: null,
            reasons: [reason],
            weight: thumbsDown
          }
        })
      )
    })

    const compareNext = Effect.fn("Findings.compareNext")(function* (scan: Scan) {
      const version = yield* store.liveVersion(scan)
      const chunks = yield* store.next(scan, batchSize)
      yield* Effect.forEach(chunks, (chunk) => compare(scan, chunk), { discard: true })
      const last = chunks.at(-1)
      if (last !== undefined && chunks.length === batchSize)
        return yield* store.advance(scan, { version: last.version, chunkId: last.id })
      yield* store.advance(scan, { version, chunkId: afterAllChunks })
      if (scan.staleIsDue) yield* findStale(scan)
    })

    /**
     * Compares one batch of the agent. The claim is kept when the batch fails: an agent whose passages cannot be compared is
     * then claimed last the next time, and does not hold up the others.
     */
    const compareBatch = (agent: AgentScope) =>
      Effect.gen(function* () {
        const claimed = yield* store.claim(agent)
        if (Option.isNone(claimed)) return "none" as const
        return yield* compareNext(claimed.value).pipe(
          sql.withTransaction,
          Effect.as("compared" as const),
          Effect.catchAllCause((cause) =>
            Cause.isInterrupted(cause)
              ? Effect.failCause(cause)
              : Effect.logWarning(`Passages of agent ${agent.agentId} could not be compared`, cause).pipe(
                  Effect.as("failed" as const)
                )
          )
        )
      }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))

    /** Compares several batches, agents in turns. Returns true when there may be more to do. */
    const sweep = Effect.gen(function* () {
      const due = yield* store.due(maxBatches)
      let open = due
      let done = 0
      let compared = 0
      while (open.length > 0 && done < maxBatches) {
        const next: Array<AgentScope> = []
        for (const agent of open) {
          if (done++ >= maxBatches) next.push(agent)
          else if ((yield* compareBatch(agent)) === "compared") {
            next.push(agent)
            compared += 1
          }
        }
        open = next
      }
      // When nothing was compared, another process compares them, or none of them can be compared.
      return compared > 0 && (open.length > 0 || due.length === maxBatches)
    }).pipe(Effect.withSpan("Findings.sweep"))

    /** Highest weight first. */
    const list = Effect.fn("Findings.list")(function* (
      tenant: TenantScope,
      agentId: AgentId,
      {
        after,
        dismissed = false,
        kind,
        limit
      }: {
        readonly kind?: FindingKind | undefined
        readonly dismissed?: boolean | undefined
        readonly limit: number
        readonly after: string | undefined
      }
    ) {
      const scope = yield* agents.findScope(tenant, agentId).pipe(orNoSuch("agent"))
      const found = yield* store.page(scope, {
        kind,
        dismissed,
        limit,
        after: after === undefined ? undefined : parseCursor(after)
      })
      const { next, rows } = pageBy(found, limit, cursorOf)
      const { behind, ...counts } = yield* store.summary(scope, { dismissed })
      return {
        findings: rows.map(({ weight: _, ...finding }) => finding),
        counts,
        isComplete: !behind,
        next
      }
    })

    /** A dismissed finding is not listed until one of its passages changes or it is restored. */
    const setDismissed = Effect.fn("Findings.setDismissed")(function* (
      tenant: TenantScope,
      agentId: AgentId,
      id: FindingId,
      isDismissed: boolean
    ) {
      const found = yield* store
        .dismiss({ tenantId: tenant.tenantId, agentId }, id, isDismissed)
        .pipe(orNoSuch("finding"))
      const { weight: _, ...finding } = found
      return finding
    })

    /** Figures of each source of the agent for one month, in order of source id. The default is the current month. */
    const values = Effect.fn("Findings.values")(function* (
      tenant: TenantScope,
      agentId: AgentId,
      month: string | undefined,
      page: { readonly after: string; readonly limit: number }
    ) {
      const scope = yield* agents.findScope(tenant, agentId).pipe(orNoSuch("agent"))
      const now = yield* DateTime.now
      const named = month ?? DateTime.formatIso(now).slice(0, 7)
      const from = DateTime.unsafeMake(`${named}-01T00:00:00.000Z`)
      const to = DateTime.add(from, { months: 1 })
      const found = yield* store.values(scope, { from, to, ...page })
      const { next, rows } = pageBy(found, page.limit, ({ sourceId }) => sourceId)
      return { month: named, sources: rows, next }
    })

    return { sweep, list, setDismissed, values } as const
  })
}) {}
