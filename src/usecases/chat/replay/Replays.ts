/**
 * Runs stored turns again, to show the effect of a change. Nothing is stored or sent. The usage of models is counted, and
 * taken from budgets.
 */
import * as Arr from "effect/Array"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { Embedder } from "../../../capabilities/Embedder.ts"
import { GroundingChecker } from "../../../capabilities/GroundingChecker.ts"
import { ModelRuntime } from "../../../capabilities/ModelRuntime.ts"
import { VectorSearch } from "../../../capabilities/VectorSearch.ts"
import type { Actor } from "../../../capabilities/AuditLog.ts"
import { withSharedPermit } from "../../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../../concurrency/FairLimiter.ts"
import type { AgentScope, Caller, ReadScope } from "../../../domain/accounts/Access.ts"
import { declaredArguments } from "../../../domain/agents/DeclaredArguments.ts"
import type { TestCaseFields } from "../../../domain/agents/TestCase.ts"
import type { ReplayedRun, ReplayRequest } from "../../../domain/chat/ReplayedRun.ts"
import { NotFound, ServiceUnavailable, noSuch, orNoSuch } from "../../../domain/Errors.ts"
import { type AgentId, newId, type RunId } from "../../../domain/Ids.ts"
import type { QaPair } from "../../../domain/knowledge/CuratedSource.ts"
import { AgentStore } from "../../../store/agents/Agents.ts"
import { shownSettings } from "../../../store/agents/AgentSettings.ts"
import { ToolStore } from "../../../store/agents/Tools.ts"
import { RecordedRunStore } from "../../../store/chat/RecordedRuns.ts"
import { PassageStore } from "../../../store/knowledge/Passages.ts"
import { OtherModelCalls } from "../../billing/OtherModelCalls.ts"
import { TurnSettings } from "../TurnSettings.ts"
import * as DraftAnswer from "./DraftAnswer.ts"
import { declaredSchema } from "../tools/DeclaredSchema.ts"
import * as ReplayTurn from "./ReplayTurn.ts"

/** The actor of a replay for the audit trail, and what it may read. A key reads its own agent only. */
export const replayAccess = (
  caller: Caller,
  agentId: AgentId
): Effect.Effect<{ readonly scope: ReadScope; readonly actor: Actor }, NotFound> => {
  if (caller._tag === "User") {
    const { tenantId, userId } = caller.user
    return Effect.succeed({
      scope: { tenantId, agentId, sourceScope: null },
      actor: { type: "user", id: userId }
    })
  }
  const { permissions: _, ...scope } = caller.key
  return scope.agentId === agentId
    ? Effect.succeed({ scope, actor: { type: "key", id: scope.keyId } })
    : Effect.fail(noSuch("agent"))
}

const tooManyReplays = () =>
  new ServiceUnavailable({
    message: "Too many replays are under way. Try again in half a minute.",
    details: { retryAfterSeconds: 30 }
  })

export class Replays extends Effect.Service<Replays>()("usecases/chat/replay/Replays", {
  effect: Effect.gen(function* () {
    const runs = yield* RecordedRunStore
    const agents = yield* AgentStore
    const tools = yield* ToolStore
    const { timeout } = yield* TurnSettings
    const environment: ReplayTurn.ReplayEnvironment = {
      search: yield* VectorSearch,
      texts: yield* PassageStore,
      embedder: yield* Embedder,
      runtime: yield* ModelRuntime,
      checker: yield* GroundingChecker
    }
    const { reserve } = yield* OtherModelCalls
    // Few, because they use the same model as customers.
    const limiter = new FairLimiter({
      name: "replays",
      permits: 2,
      maxPermitsPerOwner: 1,
      maxWaiting: 64,
      maxWait: "5 minutes"
    })
    const withPermit = withSharedPermit(limiter, tooManyReplays)

    /** The settings of `version`; of the published version when undefined. */
    const settingsOf = Effect.fn("Replays.settingsOf")(function* (
      scope: ReadScope,
      version: number | undefined
    ) {
      const found = yield* agents.find(scope, scope.agentId).pipe(orNoSuch("agent"))
      const { publishedVersion, ...settings } = found
      if (version === undefined || version === publishedVersion)
        return { version: publishedVersion, settings }
      const recordedSettings = yield* agents.settingsOf(scope, scope.agentId, version)
      if (Option.isNone(recordedSettings))
        return yield* new NotFound({ message: `The agent has no version ${version}.` })
      return { version, settings: shownSettings(recordedSettings.value) }
    })

    const withResources = Effect.fn("Replays.withResources")(function* (
      scope: ReadScope,
      chosen: Pick<ReplayTurn.ReplayAgent, "settings" | "version">
    ) {
      const { hasCurated, hasSources, hasTools } = yield* runs.resourcesOf(scope)
      const stored = hasTools ? yield* tools.list(scope) : []
      const [remote, described] = Arr.partitionMap(
        stored,
        ({ definition: { description, http, parameters }, name }) =>
          http === undefined
            ? Either.left(name)
            : Either.right({ name, description, parameters: declaredSchema(parameters) })
      )
      const agent: ReplayTurn.ReplayAgent = {
        ...chosen,
        hasCurated,
        hasSources,
        tools: {
          described,
          others: [...remote, ...chosen.settings.tools],
          sent: (called, input) => {
            const http = stored.find(
              ({ definition, name }) => name === called && definition.http !== undefined
            )
            return http === undefined ? input : declaredArguments(http.definition, input)
          }
        }
      }
      return agent
    })

    const agentOf = (scope: ReadScope, version: number | undefined) =>
      Effect.flatMap(settingsOf(scope, version), (chosen) => withResources(scope, chosen))

    const findRun = (scope: ReadScope, id: RunId) =>
      Effect.flatMap(
        runs.find(scope, id),
        Option.match({
          onNone: () => new NotFound({ message: "A run of runIds does not exist for this agent." }),
          onSome: Effect.succeed
        })
      )

    const replay = (
      kind: "experiment" | "replay",
      given: ReplayTurn.ReplayEnvironment,
      scope: ReadScope,
      asked: ReplayTurn.Replayable,
      agent: ReplayTurn.ReplayAgent
    ) =>
      Effect.scoped(
        Effect.flatMap(reserve(scope, kind, timeout), (bills) =>
          ReplayTurn.replay(given, scope, asked, agent, timeout, bills)
        )
      )

    /**
     * Runs each of `runIds` again, in order, after `beforeReplay` has run for all of them. Fails with NOT_FOUND before
     * the first one when a run belongs to another agent, with TURN_LIMIT_EXCEEDED when a budget is spent, and with
     * SERVICE_UNAVAILABLE when too many replays wait.
     */
    const run = Effect.fn("Replays.run")(function* <E>(
      scope: ReadScope,
      { runIds, version }: ReplayRequest,
      beforeReplay: (id: RunId) => Effect.Effect<void, E>
    ) {
      const agent = yield* agentOf(scope, version)
      const found = yield* Effect.forEach([...new Set(runIds)], (id) => findRun(scope, id))
      yield* Effect.forEach(found, ({ id }) => beforeReplay(id), { discard: true })
      const replayed: ReadonlyArray<ReplayedRun> = yield* Effect.forEach(found, (one) =>
        withPermit(Effect.map(replay("replay", environment, scope, one, agent), ({ replayed }) => replayed))
      )
      return replayed
    })

    /** The result of `asked`, with its duration in milliseconds, the message of its failure, and its tokens. */
    const timedReplay = (
      given: ReplayTurn.ReplayEnvironment,
      scope: ReadScope,
      asked: ReplayTurn.Replayable,
      agent: ReplayTurn.ReplayAgent
    ) =>
      Effect.map(
        Effect.timed(replay("experiment", given, scope, asked, agent)),
        ([took, { replayed, ...rest }]) => ({ ...replayed, ...rest, latency: Duration.toMillis(took) })
      )

    /**
     * Runs questions with the settings `chosen` and read access to all sources of the agent. `question` runs a first
     * message of a new conversation, with the recorded tool answers of the turn `runId`; with a schema its reply is an
     * object. `turn` runs that turn again. Neither is stored. Both fail with TURN_LIMIT_EXCEEDED when a budget is spent.
     * `draft` is a curated answer that is found in addition to the live ones.
     */
    const prepare = Effect.fn("Replays.prepare")(function* (
      of: AgentScope,
      chosen: Pick<ReplayTurn.ReplayAgent, "settings" | "version">,
      draft: QaPair | null = null
    ) {
      const scope: ReadScope = { ...of, sourceScope: null }
      const agentWithResources = yield* withResources(scope, chosen)
      const agent =
        draft === null ? agentWithResources : { ...agentWithResources, hasCurated: true, hasSources: true }
      const search = draft === null ? environment.search : DraftAnswer.withDraft(environment.search, draft)
      const replayEnvironment = { ...environment, search }
      const question = Effect.fn("Replays.question")(function* (
        { question: text, responseSchema }: Pick<TestCaseFields, "question" | "responseSchema">,
        runId: RunId | null
      ) {
        const stored = runId === null ? Option.none() : yield* runs.find(scope, runId)
        const asked: ReplayTurn.Replayable = {
          ...(responseSchema === undefined ? {} : { responseSchema }),
          id: yield* newId.run,
          status: "complete",
          conversationId: yield* newId.conversation,
          channel: "api",
          endUserId: yield* newId.endUser,
          userMessageId: yield* newId.message,
          question: text,
          hasFiles: false,
          startedAt: yield* DateTime.now,
          sourceScope: Option.match(stored, { onNone: () => null, onSome: (run) => run.sourceScope }),
          reply: null,
          citations: null,
          inputTokens: 0,
          outputTokens: 0,
          events: Option.match(stored, { onNone: () => [], onSome: (run) => run.events }),
          history: []
        }
        return yield* timedReplay(replayEnvironment, scope, asked, agent)
      })
      const turn = Effect.fn("Replays.turn")(function* (runId: RunId) {
        const stored = yield* runs.find(scope, runId)
        return Option.isNone(stored)
          ? null
          : yield* timedReplay(replayEnvironment, scope, stored.value, agent)
      })
      return { question, turn }
    })

    return { run, prepare } as const
  })
}) {}
