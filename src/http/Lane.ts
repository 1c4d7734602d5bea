/**
 * A lane beside the framework, for routes that are called so often that the framework's work for a request would be most
 * of theirs. What a driver does not take goes on as ever.
 */
import { IncomingMessage, type Server, ServerResponse } from "node:http"
import type { HttpServerResponse } from "@effect/platform/HttpServerResponse"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Answers with a response whose body is there as a whole. */
export const send = (response: ServerResponse, { body, headers, status }: HttpServerResponse): void => {
  response.writeHead(status, headers)
  response.end(body._tag === "Uint8Array" ? body.body : undefined)
}

/** Answers the request and returns true, or leaves both alone and returns false. */
export type Driver = (request: IncomingMessage, response: ServerResponse) => boolean

export class Lane extends Context.Tag("http/Lane")<
  Lane,
  {
    /** Asks `driver` first, until the scope closes. */
    readonly open: (driver: Driver) => Effect.Effect<void, never, Scope.Scope>
  }
>() {}

/** Stands before every listener of `server`. */
export const of = (server: Server): Context.Tag.Service<Lane> => {
  const drivers = new Set<Driver>()
  const taken = (request: unknown, response: unknown) => {
    if (!(request instanceof IncomingMessage && response instanceof ServerResponse)) return false
    for (const driver of drivers) if (driver(request, response)) return true
    return false
  }
  const { emit } = server
  const ahead = (event: unknown, ...given: ReadonlyArray<unknown>): unknown =>
    (event === "request" && taken(given[0], given[1])) || Reflect.apply(emit, server, [event, ...given])
  Object.defineProperty(server, "emit", { configurable: true, value: ahead })
  return {
    open: (driver) =>
      Effect.acquireRelease(
        Effect.sync(() => drivers.add(driver)),
        () => Effect.sync(() => drivers.delete(driver))
      )
  }
}
