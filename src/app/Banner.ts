/** Output at start: the server's address, and at the first start what it created and a working example request. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Sources } from "../usecases/knowledge/Sources.ts"
import type { Settings } from "./config/Config.ts"
import type { FirstRun } from "./FirstRun.ts"

/** Time-out for the sample source. The banner is printed in any case. */
const sampleTimeout = "60 seconds"

/** Waits until the sample source is ingested, so that the printed request gets an answer from it. */
const waitForSample = ({ jobId, scope }: FirstRun) =>
  Effect.gen(function* () {
    const sources = yield* Sources
    if (jobId === null) return
    yield* Console.error("Reading the documentation, the sample source …")
    yield* sources
      .job(scope, jobId)
      .pipe(
        Effect.delay("50 millis"),
        Effect.repeat({ until: ({ status }) => status !== "QUEUED" && status !== "RUNNING" }),
        Effect.timeout(sampleTimeout),
        Effect.ignore
      )
  })

const exampleRequest = (settings: Settings, apiKey: Redacted.Redacted): string =>
  [
    `curl -s ${settings.apiUrl}/chat \\`,
    `  -H 'x-api-key: ${Redacted.value(apiKey)}' \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d '{"message": "How do I add a source?"}'`
  ].join("\n")

/** Prints what is shown once. */
export const printSecrets = ({ apiKey, email, password }: FirstRun) =>
  Console.log(
    [
      "",
      `  API key    ${Redacted.value(apiKey)}   (shown once)`,
      `  Sign in    ${email}`,
      ...(Option.isSome(password) ? [`  Password   ${Redacted.value(password.value)}   (shown once)`] : []),
      ""
    ].join("\n")
  )

/** `health` is the separate address of health and metrics. */
export const print = (
  settings: Settings,
  role: string,
  first: Option.Option<FirstRun>,
  health: string | null
) =>
  Effect.gen(function* () {
    if (role === "worker") {
      return yield* Console.log(
        `Spoke is working.${health === null ? "" : ` Health and metrics are at ${health}.`}`
      )
    }
    if (Option.isSome(first)) yield* waitForSample(first.value)
    yield* Console.log(
      [
        "",
        `Spoke is listening on ${settings.appUrl}`,
        "",
        `  Dashboard  ${settings.appUrl}`,
        `  API        ${settings.apiUrl}`,
        `  Data       ${settings.database === null ? settings.dataDir : "PostgreSQL"}`,
        `  Model      ${settings.model?.chatModel ?? "none: replies are extracts from the sources (set OPENAI_API_KEY)"}`,
        ...(health === null ? [] : [`  Health     ${health}`]),
        ...(Option.isSome(first)
          ? ["", "Ask the agent something:", "", exampleRequest(settings, first.value.apiKey)]
          : []),
        ""
      ].join("\n")
    )
  })
