/**
 * Measures the finders on a generated company, end to end: sources are read, people ask and rate, passages are
 * compared, each gap is corrected, and new questions are asked before and after.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Embedder } from "../../src/capabilities/Embedder.ts"
import { FindingStore } from "../../src/store/knowledge/Findings.ts"
import { AgentStore } from "../../src/store/agents/Agents.ts"
import { Findings } from "../../src/usecases/knowledge/Findings.ts"
import { type CompanySize, makeCompany } from "./Company.ts"
import { makeHosted } from "./Hosted.ts"

export interface Found {
  /** What was planted, and what was found. */
  readonly planted: number
  readonly found: number
  readonly precision: number
  readonly recall: number
}

export interface CompanyFigures {
  readonly pages: number
  readonly conversations: number
  readonly contradictions: Found
  readonly duplicates: Found
  readonly stale: Found
  /** Questions that no page answers, as the groups of turns without an answer tell them; `groups` is how many there are. */
  readonly gaps: Found & { readonly groups: number }
  /** Questions that were never asked before, and those of them that pass before and after all gaps are corrected. */
  readonly held: { readonly questions: number; readonly before: number; readonly after: number }
  /** Of what the pages answer. */
  readonly known: { readonly questions: number; readonly before: number; readonly after: number }
  /** Cases that passed before and fail after. */
  readonly broken: number
}

const round = (value: number) => Math.round(value * 1_000) / 1_000

const compareFound = (planted: ReadonlyArray<string>, found: ReadonlyArray<string>): Found => {
  const wanted = new Set(planted)
  const all = new Set(found)
  const right = [...all].filter((one) => wanted.has(one)).length
  return {
    planted: wanted.size,
    found: all.size,
    precision: round(all.size === 0 ? 1 : right / all.size),
    recall: round(wanted.size === 0 ? 1 : right / wanted.size)
  }
}

const pairOf = (names: ReadonlyArray<string>): string => names.toSorted().join(" + ")

interface Finding {
  readonly kind: string
  readonly passages: ReadonlyArray<{ readonly sourceName: string }>
}

interface QuestionGroup {
  readonly id: string
  readonly kinds: { readonly unanswered: number }
  readonly examples: ReadonlyArray<{ readonly runId: string }>
}

interface CaseResult {
  readonly position: number
  readonly result: { readonly passed: boolean }
}

/** With the test embedder, or the given one. */
export const run = async (
  size: CompanySize,
  givenEmbedder: Layer.Layer<Embedder>,
  log: (line: string) => void = () => undefined
): Promise<CompanyFigures> => {
  const company = makeCompany(size)
  const held: { sql: SqlClient.SqlClient | null } = { sql: null }
  // The service and the benchmark share the database.
  const embedder = Layer.effect(
    Embedder,
    Effect.gen(function* () {
      held.sql = yield* SqlClient.SqlClient
      return yield* Embedder
    })
  ).pipe(Layer.provide(givenEmbedder))
  const hosted = await makeHosted(embedder)
  try {
    const { sql } = held
    if (sql === null) throw new Error("The database is not there.")
    const runInDatabase = <A, E>(effect: Effect.Effect<A, E, SqlClient.SqlClient>) =>
      Effect.runPromise(Effect.provideService(effect, SqlClient.SqlClient, sql))
    const agent = await hosted.agent()
    log(`${company.pages.length} pages`)
    const ids = await Promise.all(
      company.pages.map(async ({ name, text }) => {
        const config = { text }
        const made = await hosted.good("POST", "/api/sources", {
          agentId: agent.id,
          type: "TEXT",
          name,
          config
        })
        return String(made.source.id)
      })
    )
    for (const id of ids) await agent.ready(id)
    for (const [place, { daysOld }] of company.pages.entries())
      await runInDatabase(
        sql`update documents set created_at = now() - make_interval(days => ${daysOld}::int) where source_id = ${ids[place] ?? ""}`
      )

    log(`${company.askings.length} conversations`)
    /** A turn that each gap was asked about in. */
    const unansweredRuns = new Map<number, string>()
    const gapOf = new Map<string, number>()
    for (const { gap, person, question, rating } of company.askings) {
      const { runId } = await agent.chat(question, person)
      if (gap !== null) unansweredRuns.set(gap, runId)
      if (gap !== null) gapOf.set(runId, gap)
      if (rating !== null)
        await runInDatabase(sql`update agent_runs set rating = ${rating} where id = ${runId}`)
    }

    log("what no page answers")
    const groups: Array<QuestionGroup> = []
    for (let cursor = ""; ;) {
      const page = await hosted.good("GET", `/api/insights?agentId=${agent.id}&limit=100${cursor}`)
      // The first report makes vectors for a bounded time; the next one goes on.
      if (page.withoutVector > 0) continue
      groups.push(...page.groups)
      if (page.nextCursor === null) break
      cursor = `&cursor=${encodeURIComponent(page.nextCursor)}`
    }
    const unanswered = groups.filter(({ kinds }) => kinds.unanswered > 0)
    /** The gap that all examples of a group ask about; a group that mixes gaps, or is of none, is found by mistake. */
    const gapOfGroup = ({ examples, id }: QuestionGroup): string => {
      const [gap, ...others] = new Set(examples.map(({ runId }) => gapOf.get(runId)))
      return gap === undefined || others.length > 0 ? `mistake ${id}` : `gap ${gap}`
    }

    log("what is wrong with the pages")
    const findings = Findings.Default.pipe(
      Layer.provide(Layer.merge(FindingStore.Default, AgentStore.Default)),
      Layer.provide(Layer.succeed(SqlClient.SqlClient, sql))
    )
    const sweep = Effect.flatMap(Findings, (found) => found.sweep).pipe(Effect.provide(findings))
    // The server's own fiber may run at the same time.
    const listed: Array<Finding> = []
    for (;;) {
      await runInDatabase(sweep)
      if ((await hosted.good("GET", `${agent.path}/findings`)).isComplete) break
    }
    await runInDatabase(sql`update passage_scans set stale_at = null`)
    while (await runInDatabase(sweep));
    for (let cursor = ""; ;) {
      const page = await hosted.good("GET", `${agent.path}/findings?limit=100${cursor}`)
      listed.push(...page.findings)
      if (page.nextCursor === null) break
      cursor = `&cursor=${encodeURIComponent(page.nextCursor)}`
    }
    const pairsOf = (kind: string) =>
      listed
        .filter((finding) => finding.kind === kind)
        .map(({ passages }) => pairOf(passages.map(({ sourceName }) => sourceName)))

    const cases = [
      ...company.gaps.flatMap(({ fact, held: questions }) =>
        questions.map((question) => ({ question, expectFacts: [fact] }))
      ),
      ...company.known.slice(0, 400).map(({ fact, question }) => ({ question, expectFacts: [fact] }))
    ]
    const runCases = async (baseline: string | null) => {
      const body = { cases, ...(baseline === null ? {} : { baseline }) }
      const { experiment } = await hosted.good("POST", `${agent.path}/experiments`, body)
      const { report } = await agent.ended(experiment.id)
      const passed = new Set<number>()
      for (let cursor = ""; ;) {
        const page = await hosted.good("GET", `/api/experiments/${experiment.id}/results?limit=100${cursor}`)
        const results: ReadonlyArray<CaseResult> = page.results
        for (const { position, result } of results) if (result.passed) passed.add(position)
        if (page.nextCursor === null) break
        cursor = `&cursor=${encodeURIComponent(page.nextCursor)}`
      }
      return { id: String(experiment.id), report, passed }
    }
    log("what was never asked, before")
    const before = await runCases(null)
    log("corrections")
    for (const [gap, { answer }] of company.gaps.entries()) {
      const runId = unansweredRuns.get(gap)
      if (runId === undefined) throw new Error("Nobody asked about a gap.")
      const { correction } = await hosted.good("POST", `${agent.path}/corrections`, {
        runIds: [runId],
        answer
      })
      const approved = await hosted.good("POST", `/api/corrections/${correction.id}/approve?force=true`)
      await agent.ready(approved.correction.sourceId)
    }
    log("what was never asked, after")
    const after = await runCases(before.id)
    const count = (passed: ReadonlySet<number>, of: (position: number) => boolean) =>
      [...passed].filter(of).length
    const heldCount = company.gaps.reduce((sum, { held: questions }) => sum + questions.length, 0)
    const isHeld = (position: number) => position < heldCount
    const isKnown = (position: number) => !isHeld(position)
    return {
      pages: company.pages.length,
      conversations: company.askings.length,
      contradictions: compareFound(company.contradictions.map(pairOf), pairsOf("contradiction")),
      duplicates: compareFound(company.duplicates.map(pairOf), pairsOf("duplicate")),
      stale: compareFound(company.stale, pairsOf("stale")),
      gaps: {
        ...compareFound(
          company.gaps.map((_, place) => `gap ${place}`),
          unanswered.map(gapOfGroup)
        ),
        groups: unanswered.length
      },
      held: {
        questions: heldCount,
        before: count(before.passed, isHeld),
        after: count(after.passed, isHeld)
      },
      known: {
        questions: cases.length - heldCount,
        before: count(before.passed, isKnown),
        after: count(after.passed, isKnown)
      },
      broken: after.report.comparison.broken.length
    }
  } finally {
    await hosted.close()
  }
}
