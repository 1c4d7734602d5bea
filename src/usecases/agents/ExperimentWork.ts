/**
 * Runs the questions of experiments, as jobs of the queue `experiments`. Each answer is stored before the next
 * question, so that a repeated job resumes where it stopped. Questions are answered by replays, which have no effects
 * outside.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import type { QueueJob } from "../../capabilities/JobQueue.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { judge, type NoReply, type Reply, type Verdict } from "../../domain/agents/evaluation/Judge.ts"
import { ExperimentId, type ExperimentOutcome } from "../../domain/agents/Experiment.ts"
import type { Masking } from "../../domain/agents/Masking.ts"
import type { TestCaseFields } from "../../domain/agents/TestCase.ts"
import type { ReplayedRun } from "../../domain/chat/ReplayedRun.ts"
import type { TurnLimitExceeded } from "../../domain/Errors.ts"
import { TenantId } from "../../domain/Ids.ts"
import { shownSettings } from "../../store/agents/AgentSettings.ts"
import { ExperimentStore, type WaitingQuestion } from "../../store/agents/Experiments.ts"
import { Replays } from "../chat/replay/Replays.ts"
import type { Replay } from "../chat/replay/ReplayTurn.ts"
import { CriterionJudge } from "./CriterionJudge.ts"

const Payload = Schema.Struct({ tenantId: TenantId, experimentId: ExperimentId })

/** Maximum concurrent questions of one experiment: they use the same model as customers. */
const maxConcurrentQuestions = 2
type Replayed = ReplayedRun & Omit<Replay, "replayed"> & { readonly latency: number }

/** The agent that answers the questions, and its setting of masking. */
interface TestedAgent {
  readonly scope: AgentScope
  readonly masking: Masking | null
}

const replyOf = (
  { responseSchema }: TestCaseFields,
  { after, latency, problem, reason, tokens }: Replayed
): Reply | NoReply => {
  if (after === null) return { error: reason ?? "no reply", tokens }
  const { citations, failure, reply } = after
  if (reply !== null) return { text: reply, citations, latency, tokens }
  const code = failure ?? "no reply"
  // The code alone does not tell that the reply did not fit the schema.
  return { error: responseSchema === undefined || problem === null ? code : `${code}: ${problem}`, tokens }
}

const judgedOutcome = (
  asked: TestCaseFields,
  reply: Reply | NoReply,
  verdict?: Verdict
): ExperimentOutcome => {
  const { line: _, question: __, ...result } = judge({ ...asked, line: 1 }, reply, [], verdict)
  return { ...result, outcome: null, before: null }
}

const tokensOf = ({ inputTokens, outputTokens, verdict }: ExperimentOutcome): number =>
  (inputTokens ?? 0) + (outputTokens ?? 0) + (verdict?.inputTokens ?? 0) + (verdict?.outputTokens ?? 0)

const differsMessage = "The reply or its citations differ."

/** A replayed turn passes when its outcome is the same as before. */
const comparedWithBefore = (asked: TestCaseFields, replayed: Replayed): ExperimentOutcome => {
  const { before, outcome, reason } = replayed
  const problems = outcome === "same" ? [] : [reason ?? differsMessage]
  return {
    ...judgedOutcome(asked, replyOf(asked, replayed)),
    passed: outcome === "same",
    problems,
    outcome,
    before: before.reply
  }
}

export class ExperimentWork extends Effect.Service<ExperimentWork>()("usecases/agents/ExperimentWork", {
  effect: Effect.gen(function* () {
    const store = yield* ExperimentStore
    const replays = yield* Replays
    const { verdict } = yield* CriterionJudge

    const judgeReply = Effect.fn("ExperimentWork.judgeReply")(function* (
      { masking, scope }: TestedAgent,
      asked: TestCaseFields,
      replayed: Replayed
    ) {
      const { criterion, question } = asked
      const reply = replyOf(asked, replayed)
      if (criterion === undefined || "error" in reply) return judgedOutcome(asked, reply)
      return judgedOutcome(
        asked,
        reply,
        yield* verdict(scope, { criterion, question, reply: reply.text, masking })
      )
    })

    type PreparedReplays = Effect.Effect.Success<ReturnType<typeof replays.prepare>>

    const outcomeOf = (
      agent: TestedAgent,
      prepared: PreparedReplays,
      kind: "cases" | "turns",
      { asked, runId }: WaitingQuestion
    ): Effect.Effect<ExperimentOutcome, TurnLimitExceeded> => {
      if (kind === "cases" || runId === null)
        return Effect.flatMap(prepared.question(asked, runId), (replayed) =>
          judgeReply(agent, asked, replayed)
        )
      return Effect.map(prepared.turn(runId), (replayed) =>
        replayed === null
          ? judgedOutcome(asked, { error: "The turn is gone." })
          : comparedWithBefore(asked, replayed)
      )
    }

    const payloadOf = (job: QueueJob) => Effect.orDie(Schema.decodeUnknown(Payload)(job.payload))

    const askAll = Effect.fn("ExperimentWork.askAll")(function* (job: QueueJob) {
      const { experimentId: id, tenantId } = yield* payloadOf(job)
      const scope = { tenantId }
      const begun = yield* store.begin(scope, id)
      if (Option.isNone(begun)) return
      const { agentId, curated, kind, maxTokens, settings, version } = begun.value
      const agent = { tenantId, agentId }
      const prepared = yield* replays.prepare(
        agent,
        { version: version ?? 1, settings: shownSettings(settings) },
        curated
      )
      const before = yield* store.find(scope, id)
      const usedTokens = yield* Ref.make(
        Option.match(before, { onNone: () => 0, onSome: (at) => at.inputTokens + at.outputTokens })
      )
      const ask = (question: WaitingQuestion) =>
        outcomeOf({ scope: agent, masking: settings.masking }, prepared, kind, question).pipe(
          Effect.tap((outcome) => store.record(scope, id, question.position, outcome)),
          Effect.tap((outcome) => Ref.update(usedTokens, (sum) => sum + tokensOf(outcome))),
          // Ends the loop: an ended experiment has no waiting questions.
          Effect.catchTag("TURN_LIMIT_EXCEEDED", ({ message }) => store.end(scope, id, "failed", message))
        )
      for (;;) {
        const questions = yield* store.nextQuestions(scope, id, maxConcurrentQuestions)
        if (questions.length === 0) break
        if ((yield* Ref.get(usedTokens)) >= maxTokens) {
          yield* store.end(scope, id, "failed", "Its token budget is used up.")
          return
        }
        yield* Effect.forEach(questions, ask, { concurrency: maxConcurrentQuestions, discard: true })
      }
      yield* store.end(scope, id, "complete")
    })

    const fail = Effect.fn("ExperimentWork.fail")(function* (job: QueueJob, reason: string) {
      const { experimentId, tenantId } = yield* payloadOf(job)
      yield* store.end({ tenantId }, experimentId, "failed", reason)
    })

    /**
     * Handler of queue `experiments`. Does nothing for an experiment that has ended or is gone. A defect of the last
     * attempt ends it.
     */
    const process = (job: QueueJob) =>
      Effect.tapErrorCause(askAll(job), (cause) =>
        job.lastAttempt && !Cause.isInterruptedOnly(cause)
          ? fail(job, "An unexpected error ended it. The log of the service names it.")
          : Effect.void
      ).pipe(Effect.withSpan("ExperimentWork.process"))

    /** The worker of the last attempt has died. */
    const failAbandoned = (job: QueueJob) =>
      fail(job, "The processes that asked it have stopped.").pipe(
        Effect.withSpan("ExperimentWork.failAbandoned")
      )

    return { process, failAbandoned } as const
  })
}) {}
