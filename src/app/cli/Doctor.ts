/** `spoke doctor`: checks what the server needs and how to correct it. The exit code is 1 when there is a problem. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as ProviderHttp from "../../capabilities/ModelRuntime/ProviderHttp.ts"
import * as Providers from "../Providers.ts"
import { fromEnvironment, type Settings } from "../config/Config.ts"
import * as Arguments from "./Arguments.ts"
import { CommandFailed } from "./Connection.ts"
import { checkDatabase } from "./doctor/Database.ts"
import { checkArtifacts, checkFiles } from "./doctor/Files.ts"
import { type Finding, ok, problem } from "./doctor/Finding.ts"
import { checkModels } from "./doctor/Models.ts"
import { checkPackages } from "./doctor/Packages.ts"
import * as Output from "./Output.ts"
import {
  checkEmbedding,
  checkGrounding,
  checkMail,
  checkRedis,
  checkRerank,
  checkTelemetry
} from "./doctor/Services.ts"

const marks = { ok: "ok      ", warning: "warning ", problem: "PROBLEM " } as const

/** Runs the checks one after the other, in the order in which they are reported. No check changes anything. */
export const examine = (settings: Settings) =>
  Effect.gen(function* () {
    return [
      ok("configuration", "every variable is valid"),
      ...checkPackages(),
      ...(yield* checkDatabase(settings)),
      ...(yield* checkRedis(settings)),
      yield* checkArtifacts(settings),
      ...(yield* checkFiles(settings)),
      ...(yield* checkModels(settings)),
      ...(yield* checkEmbedding(settings)),
      ...(yield* checkRerank(settings)),
      ...(yield* checkGrounding(settings)),
      ...(yield* checkMail(settings)),
      ...(yield* checkTelemetry(settings))
    ]
  }).pipe(Effect.provide(Layer.merge(ProviderHttp.layer, Providers.exchange)))

const print = (findings: ReadonlyArray<Finding>, asJson: boolean) => {
  if (!asJson)
    return Effect.forEach(
      findings,
      ({ status, check, message }) => Output.line(`${marks[status]} ${check.padEnd(14)} ${message}`),
      { discard: true }
    )
  const well = findings.every(({ status }) => status !== "problem")
  return Output.asJson({ ok: well, findings })
}

const check = (asJson: boolean) =>
  Effect.gen(function* () {
    const configured = yield* Effect.either(fromEnvironment())
    if (Either.isLeft(configured)) {
      const { message, problems } = configured.left
      if (asJson) {
        const found = problems.map((each) => problem("configuration", `${each.variable}: ${each.message}`))
        yield* print(found, asJson)
      }
      return yield* new CommandFailed({ message })
    }
    const findings = yield* examine(configured.right)
    yield* print(findings, asJson)
    const wrong = findings.filter(({ status }) => status === "problem")
    if (wrong.length > 0) {
      const names = [...new Set(wrong.map(({ check }) => check))]
      return yield* new CommandFailed({ message: `Mend ${names.join(", ")} first.` })
    }
  })

export const doctor = (run: Arguments.Run) =>
  Arguments.command(
    "doctor",
    "Check everything that the service needs, and show what to fix.",
    "spoke doctor",
    "spoke doctor --json | jq '.findings[] | select(.status != \"ok\")'"
  )
    .option("--json", "print { ok, findings: [{ status, check, message }] }")
    .action(({ json }) => run(check(json === true)))
