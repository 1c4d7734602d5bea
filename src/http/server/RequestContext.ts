/**
 * The context in which requests are handled. It excludes the services of the process, which routes got when they were
 * built: adding a service copies the whole context, a request adds several, and the process has more than two hundred.
 */
import * as Etag from "@effect/platform/Etag"
import * as FileSystem from "@effect/platform/FileSystem"
import * as HttpPlatform from "@effect/platform/HttpPlatform"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"

/** `HttpRouter.DefaultServices`, which every route may use, and the scope of the server. */
const keptServices: ReadonlySet<string> = new Set([
  Etag.Generator.key,
  FileSystem.FileSystem.key,
  HttpPlatform.HttpPlatform.key,
  Path.Path.key,
  Scope.Scope.key
])

/** Runs `effect` with the part of the process's context that an application may use while it handles a request. */
export const narrow = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.mapInputContext(effect, (context: Context.Context<R>) =>
    Context.unsafeMake<R>(new Map([...context.unsafeMap].filter(([key]) => keptServices.has(key))))
  )
