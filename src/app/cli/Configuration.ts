/**
 * `spoke pull`, `spoke plan FILE`, `spoke apply FILE` and `spoke destroy FILE`: the agents of an organisation as one
 * file.
 */
import * as readline from "node:readline/promises"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type AgentChange, Plan } from "../../domain/agents/Configuration.ts"
import * as Arguments from "./Arguments.ts"
import * as Gates from "./Gates.ts"
import { load } from "./ConfigurationFile.ts"
import { CommandFailed, manage, type ManageFlags, whileRestarting } from "./Connection.ts"
import * as Output from "./Output.ts"

interface Flags extends ManageFlags {
  readonly json?: true | undefined
}

interface PullFlags extends Flags {
  readonly agentsOnly?: true | undefined
}

interface GateFlags {
  readonly allowRegression?: true | undefined
}

interface PlanFlags extends Flags, GateFlags {
  readonly prune?: true | undefined
  /** False with `--no-cases`. */
  readonly cases?: boolean | undefined
}

interface DestroyFlags extends Flags {
  readonly yes?: true | undefined
}

interface ApplyFlags extends Omit<PlanFlags, "cases">, DestroyFlags {
  readonly wait?: true | undefined
}

const failed = (message: string) => new CommandFailed({ message })

const Applied = Schema.Struct({ plan: Plan, applied: Schema.Boolean })

const send = Effect.fn("Configuration.send")(function* (flags: ManageFlags, body: object) {
  const server = yield* manage(flags)
  const request = yield* Effect.orDie(HttpClientRequest.bodyJson(HttpClientRequest.post("/apply"), body))
  const { plan } = yield* server.call(Applied, request)
  return plan
})

const maxValueCharacters = 2_000
const valueOf = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "null"
  return text.length > maxValueCharacters
    ? `${text.slice(0, maxValueCharacters)}… (${text.length} characters)`
    : text
}

const signs = { create: "+", update: "~", delete: "-" } as const
const verbs = { create: "is created", update: "is changed", delete: "is deleted" } as const

const changeText = ({ action, agent, fields, meaning }: AgentChange): string =>
  [
    `${signs[action]} ${agent} ${verbs[action]}`,
    ...fields.map(({ after, before, field }) =>
      action === "create"
        ? `    ${field}: ${valueOf(after)}`
        : `    ${field}: ${valueOf(before)} -> ${valueOf(after)}`
    ),
    `    ${meaning}`
  ].join("\n")

const summary = ({ changes }: Plan): string => {
  const count = (action: AgentChange["action"]) => changes.filter((change) => change.action === action).length
  return `${count("create")} to create, ${count("update")} to change, ${count("delete")} to delete.`
}

const textOf = (plan: Plan, gates: ReadonlyArray<Gates.Gate>): string =>
  plan.changes.length === 0
    ? "Nothing would change."
    : [...plan.changes.map(changeText), ...gates.map(Gates.gateText)].join("\n")

const show = (plan: Plan, gates: ReadonlyArray<Gates.Gate>, json: true | undefined) =>
  json === true ? Output.asJson({ ...plan, gates }) : Output.line(textOf(plan, gates))

const pull = ({ agentsOnly, ...flags }: PullFlags) =>
  Effect.gen(function* () {
    const server = yield* manage(flags)
    const found = Schema.Struct({ config: Schema.Unknown })
    const request = HttpClientRequest.get("/config", { urlParams: { agentsOnly: agentsOnly === true } })
    const { config } = yield* server.call(found, request)
    yield* Output.asJson(config)
  })

const plan = (file: string, { allowRegression, cases, json, prune, ...flags }: PlanFlags) =>
  Effect.gen(function* () {
    const config = yield* load(file)
    const planned = yield* send(flags, { config, dryRun: true, prune: prune === true })
    const gates =
      cases === false ? [] : yield* Gates.measure(flags, config, planned, allowRegression === true)
    yield* show(planned, gates, json)
    if (allowRegression !== true) yield* Gates.failIfWorse(gates)
    if (planned.changes.length > 0) {
      return yield* new CommandFailed({ message: summary(planned), exitCode: 2 })
    }
  })

const askToConfirm = Effect.gen(function* () {
  if (!process.stdin.isTTY) return yield* failed("Nobody is here to ask. Give --yes to apply it.")
  const answer = yield* Effect.acquireUseRelease(
    Effect.sync(() => readline.createInterface({ input: process.stdin, output: process.stderr })),
    (prompt) => Effect.promise((signal) => prompt.question("Apply this? [y/N] ", { signal })),
    (prompt) => Effect.sync(() => prompt.close())
  )
  if (!/^y(?:es)?$/iu.test(answer.trim())) return yield* failed("Nothing has been changed.")
})

/** Shows the plan, asks for confirmation, and applies exactly that plan. */
const applyPlan = Effect.fn("Configuration.applyPlan")(function* (
  { allowRegression, json, yes, ...flags }: DestroyFlags & GateFlags,
  wantedState: { readonly config: unknown; readonly destroy?: true }
) {
  const planned = yield* send(flags, { ...wantedState, dryRun: true })
  if (planned.changes.length === 0) {
    yield* show(planned, [], json)
    return planned
  }
  const gates =
    wantedState.destroy === true
      ? []
      : yield* Gates.measure(flags, wantedState.config, planned, allowRegression === true)
  if (allowRegression !== true && gates.some(Gates.isWorse)) {
    yield* show(planned, gates, json)
    yield* Gates.failIfWorse(gates)
  }
  if (yes !== true) {
    // With --json, standard output has the JSON alone.
    yield* (json === true ? Output.note : Output.line)(textOf(planned, gates))
    yield* askToConfirm
  }
  const force = allowRegression === true ? { force: true } : {}
  const done = yield* send(flags, { ...wantedState, ...force, revision: planned.revision })
  yield* show(done, gates, json)
  yield* Output.note(`Applied: ${summary(done)}`)
  return done
})

const SourcesPage = Schema.Struct({
  sources: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      lastError: Schema.NullOr(Schema.String),
      latestJob: Schema.NullOr(Schema.Struct({ status: Schema.String }))
    })
  ),
  nextCursor: Schema.NullOr(Schema.String)
})

/** States of a job that has not ended. */
const openStates: ReadonlySet<string> = new Set(["QUEUED", "RUNNING"])

const pollInterval = Duration.seconds(1)
const maxWait = Duration.minutes(30)

const sourcesOf = Effect.fn("Configuration.sourcesOf")(function* (flags: ManageFlags, agentId: string) {
  const server = yield* manage(flags)
  const pages = yield* Stream.runCollect(server.pages(SourcesPage, "/sources", { agentId }))
  return Array.from(pages).flatMap(({ sources }) => sources)
})

/**
 * Reports the progress of the changed agents' sources until their jobs end. Fails with the sources that could not be
 * ingested.
 */
const waitForSources = Effect.fn("Configuration.waitForSources")(function* (
  flags: ManageFlags,
  { changes }: Plan
) {
  const ids = changes.flatMap(({ fields, id }) =>
    id !== null && fields.some(({ field }) => field.startsWith("sources.")) ? [id] : []
  )
  const listSources = Effect.gen(function* () {
    const sources = (yield* Effect.forEach(ids, (id) => whileRestarting(sourcesOf(flags, id)))).flat()
    // The state of a source is that of its last job until a worker begins the next one.
    const ended = sources.filter(({ latestJob }) => !openStates.has(latestJob?.status ?? ""))
    return { sources, ended }
  })
  const pollSources = Effect.gen(function* () {
    for (let reportedCount = -1; ; yield* Effect.sleep(pollInterval)) {
      const { ended, sources } = yield* listSources
      if (ended.length !== reportedCount)
        yield* Output.note(`${ended.length} of ${sources.length} sources are read.`)
      reportedCount = ended.length
      if (ended.length === sources.length) return sources
    }
  })
  const sources = yield* Effect.timeoutFail(pollSources, {
    duration: maxWait,
    onTimeout: () => failed("The sources are still being read. The dashboard tells how far they are.")
  })
  const unread = sources.filter(({ latestJob }) => latestJob?.status === "FAILED")
  if (unread.length > 0) {
    const lines = unread.map(({ lastError, name }) => `  ${name}: ${lastError ?? "unknown"}`)
    return yield* failed(["Sources that could not be read:", ...lines].join("\n"))
  }
})

const apply = (file: string, { prune, wait, ...flags }: ApplyFlags) =>
  Effect.gen(function* () {
    const wantedState = { config: yield* load(file), prune: prune === true }
    const done = yield* applyPlan(flags, wantedState)
    if (wait === true) yield* waitForSources(flags, done)
  })

const destroy = (file: string, flags: DestroyFlags) =>
  Effect.gen(function* () {
    yield* applyPlan(flags, { config: yield* load(file), destroy: true })
  })

const fileHelp = "JSON, YAML or a module (.mjs, .ts): the agents by name"
const allowRegressionHelp =
  "apply even if significantly fewer test cases pass than now, or not all can be asked"
const pruneHelp = "delete the agents that the file does not name"

export const pullCommand = (run: Arguments.Run) =>
  Arguments.command(
    "pull",
    "Print the agents of the organisation as a file of spoke plan and spoke apply.",
    "spoke pull --json > agents.json"
  )
    .option("--agents-only", "print only the settings of agents")
    .addOption(Arguments.json)
    .addOption(Arguments.url)
    .addOption(Arguments.token)
    .addOption(Arguments.tokenFile)
    .action((flags) => run(pull(flags)))

export const planCommand = (run: Arguments.Run) =>
  Arguments.command(
    "plan",
    "Show what spoke apply would change. Exits with 0 if nothing would change, 2 if something would, and 1 on an error.",
    "spoke plan agents.json",
    "spoke plan agents.json --json | jq .changes"
  )
    .argument("<file>", fileHelp)
    .option("--prune", pruneHelp)
    .option("--allow-regression", allowRegressionHelp)
    .option("--no-cases", "do not run the test cases of agents whose settings would change")
    .addOption(Arguments.json)
    .addOption(Arguments.url)
    .addOption(Arguments.token)
    .addOption(Arguments.tokenFile)
    .action((file, flags) => run(plan(file, flags)))

export const applyCommand = (run: Arguments.Run) =>
  Arguments.command(
    "apply",
    "Apply the file: all of its changes or none. Asks for confirmation.",
    "spoke apply agents.json",
    "spoke apply agents.yaml --yes --wait"
  )
    .argument("<file>", fileHelp)
    .option("--yes", "do not ask")
    .option("--prune", pruneHelp)
    .option("--allow-regression", allowRegressionHelp)
    .option("--wait", "wait until the sources are read; the token needs the scope sources:read")
    .addOption(Arguments.json)
    .addOption(Arguments.url)
    .addOption(Arguments.token)
    .addOption(Arguments.tokenFile)
    .action((file, flags) => run(apply(file, flags)))

export const destroyCommand = (run: Arguments.Run) =>
  Arguments.command(
    "destroy",
    "Delete the agents that the file names, with their sources, keys and conversations. Asks for confirmation.",
    "spoke destroy agents.json"
  )
    .argument("<file>", fileHelp)
    .option("--yes", "do not ask")
    .addOption(Arguments.json)
    .addOption(Arguments.url)
    .addOption(Arguments.token)
    .addOption(Arguments.tokenFile)
    .action((file, flags) => run(destroy(file, flags)))
