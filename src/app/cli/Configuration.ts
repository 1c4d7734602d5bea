/** `spoke pull`, `spoke plan FILE` and `spoke apply FILE`: the agents of an organisation as one file. */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import * as readline from "node:readline/promises"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { type AgentChange, Plan } from "../../domain/agents/Configuration.ts"
import * as Arguments from "./Arguments.ts"
import { CommandFailed, manage, type ManageFlags } from "./Connection.ts"
import * as Output from "./Output.ts"

interface Flags extends ManageFlags {
  readonly json?: true | undefined
}

interface PlanFlags extends Flags {
  readonly prune?: true | undefined
}

interface ApplyFlags extends PlanFlags {
  readonly yes?: true | undefined
}

const failed = (message: string) => new CommandFailed({ message })

const readText = (file: string) =>
  Effect.tryPromise({ try: () => fs.readFile(file, "utf8"), catch: () => failed(`${file} cannot be read.`) })

/** Texts that may stand in files of their own. */
const texts = ["instructions", "greeting"]

/** `{"file": "prompt.md"}`, beside the file that says so. */
const textOf = (folder: string, value: unknown) =>
  Predicate.isRecord(value) && typeof value["file"] === "string" && Object.keys(value).length === 1
    ? readText(path.resolve(folder, value["file"]))
    : Effect.succeed(value)

const withTexts = (folder: string, agent: unknown) =>
  Predicate.isRecord(agent)
    ? Effect.map(
        Effect.forEach(Object.entries(agent), ([name, value]) =>
          Effect.map(
            texts.includes(name) ? textOf(folder, value) : Effect.succeed(value),
            (text) => [name, text] as const
          )
        ),
        (entries) => Object.fromEntries(entries)
      )
    : Effect.succeed(agent)

const parse = (file: string, text: string) =>
  Effect.try({
    try: (): unknown => JSON.parse(text),
    catch: (cause) => failed(`${file} is no JSON${cause instanceof SyntaxError ? `: ${cause.message}` : ""}.`)
  })

/** The file with the texts that it names; everything else is for the server to check. */
const load = Effect.fn("Configuration.load")(function* (file: string) {
  const config = yield* parse(file, yield* readText(file))
  const folder = path.dirname(file)
  if (!Predicate.isRecord(config) || !Predicate.isRecord(config["agents"])) {
    return yield* failed(`${file} has no agents. Expected {"agents": {"<name>": {…}}}.`)
  }
  const agents = yield* Effect.forEach(Object.entries(config["agents"]), ([name, agent]) =>
    Effect.map(withTexts(folder, agent), (resolved) => [name, resolved] as const)
  )
  return { ...config, agents: Object.fromEntries(agents) }
})

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

const block = ({ action, agent, fields, meaning }: AgentChange): string =>
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

const show = (plan: Plan, json: true | undefined) =>
  json === true
    ? Output.asJson(plan)
    : Output.line(plan.changes.length === 0 ? "Nothing would change." : plan.changes.map(block).join("\n"))

const pull = (flags: Flags) =>
  Effect.gen(function* () {
    const server = yield* manage(flags)
    const found = Schema.Struct({ config: Schema.Unknown })
    const { config } = yield* server.call(found, HttpClientRequest.get("/config"))
    yield* Output.asJson(config)
  })

const plan = (file: string, { json, prune, ...flags }: PlanFlags) =>
  Effect.gen(function* () {
    const planned = yield* send(flags, { config: yield* load(file), dryRun: true, prune: prune === true })
    yield* show(planned, json)
    if (planned.changes.length > 0) {
      return yield* new CommandFailed({ message: summary(planned), exitCode: 2 })
    }
  })

const confirmed = Effect.gen(function* () {
  if (!process.stdin.isTTY) return yield* failed("Nobody is here to ask. Give --yes to apply it.")
  const answer = yield* Effect.acquireUseRelease(
    Effect.sync(() => readline.createInterface({ input: process.stdin, output: process.stderr })),
    (prompt) => Effect.promise((signal) => prompt.question("Apply this? [y/N] ", { signal })),
    (prompt) => Effect.sync(() => prompt.close())
  )
  if (!/^y(?:es)?$/iu.test(answer.trim())) return yield* failed("Nothing has been changed.")
})

const apply = (file: string, { json, prune, yes, ...flags }: ApplyFlags) =>
  Effect.gen(function* () {
    const config = yield* load(file)
    const planned = yield* send(flags, { config, dryRun: true, prune: prune === true })
    if (planned.changes.length === 0) return yield* show(planned, json)
    if (yes !== true) {
      yield* show(planned, undefined)
      yield* confirmed
    }
    const done = yield* send(flags, { config, prune: prune === true, revision: planned.revision })
    yield* show(done, json)
    yield* Output.note(`Applied: ${summary(done)}`)
  })

const pruneWords = "delete the agents that the file does not name"

export const pullCommand = (run: Arguments.Run) =>
  Arguments.command(
    "pull",
    "Print the agents of the organisation as a file of spoke plan and spoke apply.",
    "spoke pull --json > agents.json"
  )
    .addOption(Arguments.json)
    .addOption(Arguments.url)
    .addOption(Arguments.token)
    .addOption(Arguments.tokenFile)
    .action((flags) => run(pull(flags)))

export const planCommand = (run: Arguments.Run) =>
  Arguments.command(
    "plan",
    "Say what spoke apply would change. Exits with 0 when that is nothing, with 2 when it is something, with 1 on an error.",
    "spoke plan agents.json",
    "spoke plan agents.json --json | jq .changes"
  )
    .argument("<file>", "JSON: the agents by name")
    .option("--prune", pruneWords)
    .addOption(Arguments.json)
    .addOption(Arguments.url)
    .addOption(Arguments.token)
    .addOption(Arguments.tokenFile)
    .action((file, flags) => run(plan(file, flags)))

export const applyCommand = (run: Arguments.Run) =>
  Arguments.command(
    "apply",
    "Make the agents as the file says, all of it or nothing. Asks first.",
    "spoke apply agents.json",
    "spoke apply agents.json --yes"
  )
    .argument("<file>", "JSON: the agents by name")
    .option("--yes", "do not ask")
    .option("--prune", pruneWords)
    .addOption(Arguments.json)
    .addOption(Arguments.url)
    .addOption(Arguments.token)
    .addOption(Arguments.tokenFile)
    .action((file, flags) => run(apply(file, flags)))
