/** The search backend (SPOKE_VECTOR): pgvector in PostgreSQL, or this process. */
import * as Effect from "effect/Effect"
import { prepareVector } from "../store/Database.ts"
import type { Settings } from "./config/Config.ts"
import * as Package from "./Package.ts"

export interface VectorChoice {
  readonly backend: "pgvector" | "in-process"
  /** In words for who operates the server. */
  readonly why: string
  /** Pgvector would be taken if it were not for this. */
  readonly missing: boolean
}

const inProcess = (why: string, missing = false): VectorChoice => ({ backend: "in-process", why, missing })

/**
 * Decides, and prepares the extension when it is pgvector. A server that lacks the extension is searched in process, unless
 * pgvector was asked for by name: then that is a `VectorUnavailable`.
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
          Effect.succeed(inProcess(message, true))
        )
  }).pipe(Effect.withSpan("Vector.choose"))

/** {@link chooseVector}, and a line in the log that says so. */
export const vectorOf = (settings: Settings) =>
  Effect.tap(chooseVector(settings), ({ backend, missing, why }) =>
    (missing ? Effect.logWarning : Effect.logDebug)(`Chunks are searched by ${backend}`, why)
  )
