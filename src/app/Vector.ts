/** The search backend (SPOKE_VECTOR): pgvector in PostgreSQL, or this process. */
import * as Effect from "effect/Effect"
import { prepareVector } from "../store/Database.ts"
import type { Settings } from "./config/Config.ts"
import * as Package from "./Package.ts"

export interface VectorChoice {
  readonly backend: "pgvector" | "in-process"
  /** The reason, for the operator. */
  readonly why: string
  /** True when pgvector would be used if the extension existed. */
  readonly missing: boolean
}

const inProcess = (why: string, missing = false): VectorChoice => ({ backend: "in-process", why, missing })

/**
 * Selects the backend, and prepares the extension for pgvector. Without the extension the search runs in process,
 * unless pgvector is configured explicitly: then it is a `VectorUnavailable`.
 */
export const chooseVector = (settings: Settings) =>
  Effect.gen(function* () {
    if (settings.database === null) return inProcess("the embedded database needs no other")
    if (settings.vector === "in-process") return inProcess("SPOKE_VECTOR says so")
    const prepared = prepareVector(Package.migrations).pipe(
      Effect.map((version): VectorChoice => ({
        backend: "pgvector",
        why: `pgvector ${version}${settings.vector === null ? " is there" : ", as SPOKE_VECTOR says"}`,
        missing: false
      }))
    )
    return yield* settings.vector === "pgvector"
      ? prepared
      : Effect.catchTag(prepared, "VectorUnavailable", ({ message }) =>
          Effect.succeed(inProcess(message.replace(/\.$/u, ""), true))
        )
  }).pipe(Effect.withSpan("Vector.choose"))

/** {@link chooseVector}, and a log line with the result. */
export const vectorOf = (settings: Settings) =>
  Effect.tap(chooseVector(settings), ({ backend, missing, why }) =>
    (missing ? Effect.logWarning : Effect.logDebug)(`Chunks are searched by ${backend}: ${why}`)
  )
