/**
 * `spoke eval FILE`: asks the questions of a file and measures the replies, optionally compared with an earlier run.
 */
import * as fs from "node:fs/promises"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import { inSlices } from "../../concurrency/InSlices.ts"
import { judge } from "../../domain/agents/evaluation/Judge.ts"
import * as Report from "../../domain/agents/evaluation/Report.ts"
import type { Case } from "../../domain/agents/TestCaseFile.ts"
import * as Arguments from "./Arguments.ts"
import * as Connection from "./Connection.ts"
import * as Ask from "./eval/Ask.ts"
import * as Cases from "./eval/Cases.ts"
import * as InProcess from "./eval/InProcess.ts"
import * as StoredCases from "./eval/StoredCases.ts"
import { reportText } from "./eval/ReportText.ts"
import * as Output from "./Output.ts"

interface Flags extends Connection.Flags, Connection.ManageFlags {
  readonly data?: string | undefined
  readonly agent?: string | undefined
  readonly concurrency: number
  readonly timeout: number
  readonly refusal: ReadonlyArray<string>
  readonly minPass?: number | undefined
  readonly baseline?: string | undefined
  readonly record?: string | undefined
  readonly json?: true | undefined
}

const decodeReport = Schema.decodeUnknown(Schema.parseJson(Report.Report))

const readBaseline = (file: string) =>
  Effect.flatMap(Cases.readText(file), decodeReport).pipe(
    Effect.catchTag("ParseError", () =>
      Cases.badInput(`${file} is not a result of spoke eval. Expected the output of --record or --json.`)
    )
  )

/** Checked before the run, which takes minutes. Leaves no empty file, because the run may fail. */
const checkWritable = (file: string) =>
  Effect.tryPromise({
    try: async () => {
      const isNew = await fs.access(file).then(
        () => false,
        () => true
      )
      await fs.appendFile(file, "")
      if (isNew) await fs.rm(file)
    },
    catch: () => Cases.badInput(`${file} cannot be written.`)
  })

const record = (file: string, report: Report.Report) =>
  Effect.tryPromise({
    try: () => fs.writeFile(file, `${JSON.stringify(report, null, 2)}\n`),
    catch: () => new Connection.CommandFailed({ message: `${file} could not be written.` })
  })

/** Sends requests to the running service, or to one opened on the data folder. */
const openSender = ({ agent, data, ...flags }: Flags) =>
  data === undefined
    ? Effect.map(
        Connection.connect(flags),
        ({ execute }): Ask.Send =>
          (request) =>
            execute(HttpClientRequest.prependUrl(request, "/v1"))
      )
    : InProcess.open(data, agent)

const measure = (cases: ReadonlyArray<Case>, flags: Flags) =>
  Effect.gen(function* () {
    const timeout = Duration.seconds(flags.timeout)
    const ask = yield* Ask.make(yield* openSender(flags), { timeout })
    const done = yield* Ref.make(0)
    const failed = yield* Ref.make(0)
    const results = yield* Effect.forEach(
      cases,
      (testCase) =>
        Effect.gen(function* () {
          const result = judge(testCase, yield* ask(testCase), flags.refusal)
          if (!result.passed) yield* Ref.update(failed, (count) => count + 1)
          const count = yield* Ref.updateAndGet(done, (before) => before + 1)
          yield* Output.draw(`${count} of ${cases.length} asked, ${yield* Ref.get(failed)} failed`)
          return result
        }),
      { concurrency: flags.concurrency }
    )
    yield* Output.draw("")
    return Report.summarize(results)
  }).pipe(Effect.scoped)

/** Why the command exits with 1; undefined when it succeeds. */
const verdict = (
  report: Report.Report,
  comparison: Report.Comparison | null,
  minPass: number | undefined
) => {
  const worse = comparison?.changes.filter((change) => change.verdict === "worse") ?? []
  if (worse.length > 0) return `Worse than the baseline: ${worse.map((change) => change.measure).join(", ")}.`
  // Divided, not multiplied: 0.55 * 100 is more than 55.
  if (minPass !== undefined && report.passed / report.cases < minPass)
    return `${report.passed} of ${report.cases} cases passed; --min-pass asks for a share of ${minPass}.`
  return undefined
}

/** The cases of the file, or those stored with the agent. */
const casesOf = (file: string | undefined, { agent, data, ...flags }: Flags) => {
  if (file !== undefined) {
    return agent !== undefined && data === undefined
      ? Cases.badInput(
          "The questions of a file go to the agent of the key. Leave out --agent, or add --data."
        )
      : Cases.read(file)
  }
  return agent === undefined || data !== undefined
    ? Cases.badInput(
        "Give a file of cases, or --agent and no --data for those that are stored with an agent."
      )
    : StoredCases.read(flags, agent)
}

const evaluate = (file: string | undefined, flags: Flags) =>
  Effect.gen(function* () {
    const cases = yield* casesOf(file, flags)
    const before = flags.baseline === undefined ? null : yield* readBaseline(flags.baseline)
    if (flags.record !== undefined) yield* checkWritable(flags.record)
    const started = yield* Clock.currentTimeMillis
    const report = yield* measure(cases, flags)
    const ended = yield* Clock.currentTimeMillis
    yield* Output.note(
      `Asked ${cases.length} questions in ${Duration.format(Duration.millis(ended - started))}.`
    )
    const comparison = before === null ? null : yield* inSlices(Report.compare(before, report))
    if (flags.record !== undefined) yield* record(flags.record, report)
    yield* flags.json === true
      ? Output.asJson(comparison === null ? report : { ...report, baseline: comparison })
      : Output.line(reportText(report, comparison))
    if (comparison?.compared === 0)
      return yield* Cases.badInput(`${flags.baseline} has none of the questions of ${file ?? "the agent"}.`)
    const problem = verdict(report, comparison, flags.minPass)
    if (problem !== undefined) return yield* new Connection.CommandFailed({ message: problem })
  })

export const evalCommand = (run: Arguments.Run) =>
  Arguments.command(
    "eval",
    "Ask the questions of a file, or the test cases of an agent, and measure the replies: sources, facts, refusals, latency, tokens. Exits with 1 if a figure is worse than the baseline's, and with 2 if an input cannot be read.",
    "spoke eval questions.jsonl",
    "spoke eval questions.csv --record before.json",
    "spoke eval questions.csv --baseline before.json --json | jq .baseline",
    "spoke eval questions.jsonl --data .spoke --min-pass 0.9",
    "spoke eval --agent Helpdesk --token-file token --min-pass 0.9"
  )
    .argument("[file]", "cases: JSON Lines, or CSV where the name ends in .csv")
    .option("--baseline <file>", "recorded result to compare with")
    .option("--record <file>", "write the result to this file")
    .option("--min-pass <share>", "exit with 1 when fewer cases pass, 0 to 1", Arguments.share)
    .option("--concurrency <count>", "questions at once, 1 to 64", Arguments.wholeNumber(1, 64), 4)
    .option("--timeout <seconds>", "longest wait for a reply, 1 to 600", Arguments.wholeNumber(1, 600), 120)
    .option(
      "--refusal <words>",
      "further words by which a reply declines to answer; may be repeated",
      Arguments.repeated,
      []
    )
    .option("--data <folder>", "data folder to open in this process, instead of a running server")
    .option(
      "--agent <name>",
      "without a file: the agent, by name or id, whose stored test cases are asked; with --data: the id of the agent to ask, the only one by default"
    )
    .addOption(Arguments.json)
    .addOption(Arguments.url)
    .addOption(Arguments.key)
    .addOption(Arguments.keyFile)
    .addOption(Arguments.token)
    .addOption(Arguments.tokenFile)
    .action((file, flags) => run(evaluate(file, flags)))
