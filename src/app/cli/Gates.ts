/**
 * The effect of a plan on replies: runs the test cases of each agent whose settings would change, with the new settings
 * and with the published version.
 */
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { CreateAgent } from "../../domain/agents/Agent.ts"
import type { AgentChange, Plan } from "../../domain/agents/Configuration.ts"
import { briefly, CommandFailed, manage, type ManageFlags, whileRestarting } from "./Connection.ts"
import * as Output from "./Output.ts"

const allowHint = "--allow-regression applies the file all the same."

const pollInterval = Duration.seconds(1)
const maxWait = Duration.hours(2)

const ExperimentAnswer = Schema.Struct({
  experiment: Schema.Struct({
    id: Schema.String,
    baselineId: Schema.NullOr(Schema.String),
    status: Schema.String,
    reason: Schema.NullOr(Schema.String),
    total: Schema.Int,
    asked: Schema.Int,
    passed: Schema.Int
  })
})
const ReportAnswer = Schema.Struct({
  ...ExperimentAnswer.fields,
  report: Schema.Struct({
    comparison: Schema.NullOr(
      Schema.Struct({
        compared: Schema.Int,
        regression: Schema.Boolean,
        broken: Schema.Array(Schema.String),
        mended: Schema.Array(Schema.String)
      })
    )
  })
})
const AgentAnswer = Schema.Struct({ agent: Schema.Struct({ publishedVersion: Schema.Int }) })
const CasesPage = Schema.Struct({
  cases: Schema.Array(Schema.Struct({ runId: Schema.NullOr(Schema.String) })),
  nextCursor: Schema.NullOr(Schema.String)
})

/** The result of one agent. `regression` is true when clearly fewer cases pass than with the published version. */
export interface Gate {
  readonly agent: string
  readonly experiment: string
  readonly cases: number
  readonly passed: number
  readonly regression: boolean
  /** Questions of cases that pass now and would fail, and of those that fail now and would pass. */
  readonly broken: ReadonlyArray<string>
  readonly mended: ReadonlyArray<string>
}

export const isWorse = ({ regression }: Gate): boolean => regression

/**
 * True for fields that replies depend on. The name, the greeting, whether streams carry the reasoning, and parts other
 * than settings do not affect them.
 */
const affectsReplies = ({ field }: AgentChange["fields"][number]) =>
  /^(?:instructions|model|tools|masking|retrieval\.|grounding\.|style\.)/u.test(field)

/** The agent as the file configures it. */
const configuredAgent = (config: unknown, agent: string): Readonly<Record<string, unknown>> => {
  const agents = Predicate.hasProperty(config, "agents") ? config.agents : undefined
  const configured = Predicate.isRecord(agents) ? agents[agent] : undefined
  return Predicate.isRecord(configured) ? configured : {}
}

const settingNames = new Set(Object.keys(CreateAgent.fields))

/** The settings among the parts of an agent. Channels, for example, have secrets. */
const settingsOf = (configured: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(configured).filter(([name]) => settingNames.has(name)))

type Server = Effect.Effect.Success<ReturnType<typeof manage>>

/** True if the agent has cases once the file is applied. Those made from turns stay. */
const hasCases = (server: Server, id: string, given: unknown) =>
  Array.isArray(given) && given.length > 0
    ? Effect.succeed(true)
    : server.pages(CasesPage, `/agents/${id}/cases`).pipe(
        Stream.find(({ cases }) => cases.some(({ runId }) => given === undefined || runId !== null)),
        Stream.runHead,
        Effect.map(Option.isSome)
      )

const waitForEnd = (server: Server, agent: string, id: string) =>
  Effect.gen(function* () {
    for (; ; yield* Effect.sleep(pollInterval)) {
      const answer = yield* whileRestarting(
        server.call(ReportAnswer, HttpClientRequest.get(`/experiments/${id}`))
      )
      const { asked, status, total } = answer.experiment
      yield* Output.draw(`${agent}: ${asked} of ${total} test cases asked`)
      if (status !== "queued" && status !== "running") return answer
    }
  }).pipe(
    Effect.ensuring(Output.draw("")),
    Effect.timeoutFail({
      duration: maxWait,
      onTimeout: () => new CommandFailed({ message: `The test cases of ${agent} are still being asked.` })
    })
  )

/** Cancels an experiment and its baseline, which would use tokens, and places among those of the organisation. */
const cancel = (server: Server, { baselineId, id: own }: typeof ExperimentAnswer.Type.experiment) =>
  Effect.forEach(
    baselineId === null ? [own] : [own, baselineId],
    (id) => briefly(server.send(HttpClientRequest.post(`/experiments/${id}/cancel`))),
    { concurrency: "unbounded", discard: true }
  )

const measureAgent = Effect.fn("Gates.measureAgent")(function* (
  server: Server,
  config: unknown,
  agent: string,
  id: string
) {
  const configured = configuredAgent(config, agent)
  const { cases } = configured
  if (!(yield* hasCases(server, id, cases))) return []
  const { agent: found } = yield* server.call(AgentAnswer, HttpClientRequest.get(`/agents/${id}`))
  const body = {
    settings: settingsOf(configured),
    baselineVersion: found.publishedVersion,
    ...(cases === undefined ? {} : { cases })
  }
  const request = HttpClientRequest.bodyJson(HttpClientRequest.post(`/agents/${id}/experiments`), body)
  const { experiment: started } = yield* server.call(ExperimentAnswer, yield* Effect.orDie(request))
  const { experiment, report } = yield* waitForEnd(server, agent, started.id).pipe(
    Effect.onInterrupt(() => cancel(server, started))
  )
  const { passed, reason, status, total } = experiment
  if (status !== "complete" || report.comparison === null || report.comparison.compared < total) {
    const cause =
      status === "complete" ? "What is published could not be asked." : `The experiment is ${status}.`
    return yield* new CommandFailed({
      message: `The test cases of ${agent} were not asked to the end. ${reason ?? cause} ${allowHint}`
    })
  }
  const { broken, mended, regression } = report.comparison
  const gate: Gate = { agent, experiment: experiment.id, cases: total, passed, regression, broken, mended }
  return [gate]
})

/**
 * Measures each agent whose settings would change and that has test cases. With `allowRegression` an agent that cannot
 * be measured is left out, with a note.
 */
export const measure = Effect.fn("Gates.measure")(function* (
  flags: ManageFlags,
  config: unknown,
  { changes }: Plan,
  allowRegression: boolean
) {
  const server = yield* manage(flags)
  const gates = yield* Effect.forEach(changes, ({ action, agent, fields, id }) =>
    action === "update" && id !== null && fields.some(affectsReplies)
      ? measureAgent(server, config, agent, id).pipe(
          Effect.catchAll((failure) =>
            allowRegression ? Effect.as(Output.note(failure.message), []) : Effect.fail(failure)
          )
        )
      : Effect.succeed([])
  )
  return gates.flat()
})

const maxListedQuestions = 20

export const gateText = ({ agent, broken, cases, mended, passed, regression }: Gate): string =>
  [
    `${regression ? "!" : "="} ${agent}: ${passed} of ${cases} test cases pass${regression ? ", clearly fewer than now" : ""}`,
    ...broken.slice(0, maxListedQuestions).map((question) => `    fails now:  ${Output.shortened(question)}`),
    ...mended.slice(0, maxListedQuestions).map((question) => `    passes now: ${Output.shortened(question)}`)
  ].join("\n")

/** Fails when one of them is worse. */
export const failIfWorse = (gates: ReadonlyArray<Gate>) => {
  const worse = gates.filter(isWorse).map(({ agent }) => agent)
  return worse.length === 0
    ? Effect.void
    : new CommandFailed({
        message: `Clearly fewer test cases would pass: ${worse.join(", ")}. Nothing has been changed. ${allowHint}`
      })
}
