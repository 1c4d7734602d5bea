/** Lists answers whose cited passages have since changed or been removed, and replays their turns. */
import { createHash } from "node:crypto"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { Actor } from "../../domain/accounts/Audit.ts"
import { NotFound, orNoSuch } from "../../domain/Errors.ts"
import type { AgentId, RunId } from "../../domain/Ids.ts"
import {
  defaultReplayedTurns,
  type ImpactAnswer,
  type ImpactPassage,
  type ReplayImpact
} from "../../domain/knowledge/Impact.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import {
  type CitingRow,
  type ImpactScope,
  ImpactStore,
  type PassageState,
  type UsedPassage
} from "../../store/knowledge/Impact.ts"
import { Experiments } from "../agents/Experiments.ts"
import { gap } from "../chat/grounding/Passages.ts"
import { ReportPermits } from "../conversations/ReportPermits.ts"
import { cursorOf, parseCursor, reportTime } from "../conversations/ReportTime.ts"

/** Maximum turns of a report; the newest are used. */
const maxTurns = 2_000
/** Texts that one statement compares. */
const batchSize = 100
const maxRunIds = 5
const maxPassages = 10

type ImpactRequest = Pick<ReplayImpact, "from" | "sourceId" | "to">

interface AffectedTurn extends CitingRow {
  readonly changed: ReadonlyArray<PassageState>
}

const keyOf = ({ hash, sourceId }: UsedPassage): string => `${hash} ${sourceId}`

/** Key of a question. Questions that differ only in case and spaces have the same key. */
const questionKey = (question: string): string => question.trim().replace(/\s+/gu, " ").toLowerCase()

const idOf = (key: string): string => `imp_${createHash("sha256").update(key).digest("hex").slice(0, 20)}`

const passageOf = ({ hash: _, state, ...passage }: PassageState): ReadonlyArray<ImpactPassage> =>
  state === "same" ? [] : [{ ...passage, text: passage.text.toWellFormed(), state }]

/** Turns of one question, newest first. */
const answerOf = (key: string, turns: ReadonlyArray<AffectedTurn>): ReadonlyArray<ImpactAnswer> => {
  const [newest] = turns
  if (newest === undefined) return []
  const passages = new Map(turns.flatMap(({ changed }) => changed).map((one) => [keyOf(one), one]))
  return [
    {
      id: idOf(key),
      question: newest.question.slice(0, 300).toWellFormed(),
      reply: newest.reply.toWellFormed(),
      times: turns.length,
      lastAt: newest.at,
      runIds: turns.slice(0, maxRunIds).map(({ runId }) => runId),
      passages: [...passages.values()].flatMap(passageOf).slice(0, maxPassages)
    }
  ]
}

/** The most frequent answer first, then the newest. */
const ranked = (turns: ReadonlyArray<AffectedTurn>): ReadonlyArray<ImpactAnswer> => {
  const byQuestion = new Map<string, Array<AffectedTurn>>()
  for (const turn of turns) {
    const key = questionKey(turn.question)
    const known = byQuestion.get(key)
    if (known === undefined) byQuestion.set(key, [turn])
    else known.push(turn)
  }
  return [...byQuestion]
    .flatMap(([key, asked]) => answerOf(key, asked))
    .toSorted(
      (one, other) => other.times - one.times || ((one.runIds[0] ?? "") < (other.runIds[0] ?? "") ? 1 : -1)
    )
}

export class Impact extends Effect.Service<Impact>()("usecases/knowledge/Impact", {
  dependencies: [ReportPermits.Default],
  effect: Effect.gen(function* () {
    const store = yield* ImpactStore
    const agents = yield* AgentStore
    const experiments = yield* Experiments
    const { withPermit } = yield* ReportPermits

    const report = Effect.fn("Impact.report")(function* (scope: ImpactScope) {
      const read = yield* store.citingTurns(scope, maxTurns + 1)
      const turns = read.slice(0, maxTurns)
      const used = [
        ...new Map(turns.flatMap(({ passages }) => passages).map((one) => [keyOf(one), one])).values()
      ]
      const states = new Map<string, PassageState>()
      for (const batch of Arr.chunksOf(used, batchSize))
        for (const state of yield* store.states(scope, batch, gap))
          if (state.state !== "same") states.set(keyOf(state), state)
      const affected = turns.flatMap((turn): ReadonlyArray<AffectedTurn> => {
        const changed = turn.passages.flatMap((one) => states.get(keyOf(one)) ?? [])
        return changed.length === 0 ? [] : [{ ...turn, changed }]
      })
      return { turns: turns.length, isCut: read.length > maxTurns, answers: ranked(affected) }
    }, withPermit)

    const scopeOf = Effect.fn("Impact.scopeOf")(function* (
      tenant: TenantScope,
      agentId: AgentId,
      request: ImpactRequest
    ) {
      const agent = yield* agents.findScope(tenant, agentId).pipe(orNoSuch("agent"))
      const scope: ImpactScope = { ...agent, sourceId: request.sourceId, ...(yield* reportTime(request)) }
      return scope
    })

    /** One page of affected answers, among the newest {@link maxTurns} turns with citations. */
    const list = Effect.fn("Impact.list")(function* (
      tenant: TenantScope,
      agentId: AgentId,
      request: ImpactRequest,
      page: { readonly limit: number; readonly after: string | undefined }
    ) {
      const before = page.after === undefined ? null : parseCursor(page.after)
      const scope = yield* scopeOf(
        tenant,
        agentId,
        before === null ? request : { ...request, ...before.time }
      )
      const { answers: all, ...read } = yield* report(scope)
      const start = before === null ? 0 : all.findIndex(({ id }) => id === before.id) + 1
      const answers = before !== null && start === 0 ? [] : all.slice(start, start + page.limit)
      const last = answers.at(-1)
      const next = last !== undefined && start + answers.length < all.length ? cursorOf(scope, last.id) : null
      return { from: scope.from, to: scope.to, ...read, answers, next }
    })

    /** The newest turn of each of the most frequent answers. */
    const turnsOf = Effect.fn("Impact.turnsOf")(function* (
      tenant: TenantScope,
      agentId: AgentId,
      { answers: count = defaultReplayedTurns, version: _, ...request }: ReplayImpact
    ) {
      const { answers } = yield* report(yield* scopeOf(tenant, agentId, request))
      const runIds: ReadonlyArray<RunId> = answers
        .slice(0, count)
        .flatMap((answer) => answer.runIds.slice(0, 1))
      if (runIds.length === 0)
        return yield* new NotFound({
          message: "No answer of this time rests on a passage that has changed or gone."
        })
      return runIds
    })

    /** Starts an experiment that replays `runIds` from {@link turnsOf}. */
    const replay = (
      tenant: TenantScope,
      agentId: AgentId,
      runIds: ReadonlyArray<RunId>,
      version: number | undefined,
      author: Actor
    ) => experiments.start(tenant, agentId, { runIds, ...(version === undefined ? {} : { version }) }, author)

    return { list, turnsOf, replay } as const
  })
}) {}
