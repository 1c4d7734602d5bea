/** `spoke replay RUN…`: runs stored turns again and reports what has changed. */
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ReplayedRuns, type ReplayedRun } from "../../domain/chat/ReplayedRun.ts"
import * as Arguments from "./Arguments.ts"
import * as Connection from "./Connection.ts"
import * as Output from "./Output.ts"

interface Flags extends Connection.Flags {
  readonly agent?: string | undefined
  readonly agentVersion?: number | undefined
  readonly json?: true | undefined
}

const runText = ({ after, before, outcome, reason, runId }: ReplayedRun): string => {
  if (outcome === "same") return `${runId}  same\n`
  if (after === null) return `${runId}  diverged: ${reason ?? ""}\n`
  const replyLine = (name: string, { failure, reply }: typeof before) =>
    `  ${name}: ${reply ?? `no reply (${failure ?? "TURN_FAILED"})`}`
  return `${runId}  changed\n${replyLine("before", before)}\n${replyLine("after", after)}\n`
}

const replay = (ids: ReadonlyArray<string>, { agent, agentVersion, json, ...flags }: Flags) =>
  Effect.gen(function* () {
    const connection = yield* Connection.connect(flags)
    const agentId = agent ?? (yield* Connection.agentOf(connection))
    const replayed: Array<ReplayedRun> = []
    // What has been replayed, and paid for, is not lost when a later request fails.
    const report = (runs: ReadonlyArray<ReplayedRun>) =>
      json === true
        ? Effect.sync(() => void replayed.push(...runs))
        : Effect.forEach(runs, (each) => Output.line(runText(each)), { discard: true })
    const printJson = Effect.suspend(() =>
      json === true
        ? Effect.flatMap(Effect.orDie(Schema.encode(ReplayedRuns)({ runs: replayed })), Output.asJson)
        : Effect.void
    )
    // The server runs one at a time.
    const ask = (runId: string) =>
      connection
        .ask(
          HttpClientRequest.post(`/api/agents/${encodeURIComponent(agentId)}/replays`).pipe(
            HttpClientRequest.bodyUnsafeJson({
              runIds: [runId],
              ...(agentVersion === undefined ? {} : { version: agentVersion })
            })
          ),
          Connection.turnTimeout
        )
        .pipe(
          Effect.flatMap((response) => response.json),
          Effect.flatMap(Schema.decodeUnknown(Schema.Struct({ data: ReplayedRuns }))),
          Effect.catchTags({ ParseError: Connection.unexpected, ResponseError: Connection.unexpected }),
          Effect.flatMap(({ data }) => report(data.runs))
        )
    yield* Effect.ensuring(Effect.forEach(new Set(ids), ask, { discard: true }), printJson)
  })

export const replayCommand = (run: Arguments.Run) =>
  Arguments.command(
    "replay",
    "Run stored turns again with the current sources. Nothing is stored, sent or counted, and tools return their recorded answers.",
    "spoke replay run_…",
    "spoke replay run_… run_… --json"
  )
    .argument("<run...>", "ids of the runs")
    .option(
      "--version <number>",
      "version of the agent that answers; the current one by default",
      Arguments.wholeNumber(1, 1_000_000_000)
    )
    .option("--agent <id>", "agent of the runs; the key's agent by default")
    .addOption(Arguments.json)
    .addOption(Arguments.url)
    .addOption(Arguments.key)
    .addOption(Arguments.keyFile)
    .action((runIds, { version, ...flags }) => run(replay(runIds, { ...flags, agentVersion: version })))
