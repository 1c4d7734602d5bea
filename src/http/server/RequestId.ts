/** The id of the current request: the client's when it is well formed, else a new one. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { typeId } from "../../domain/Ids.ts"

/** Set by the boundary for the duration of a request. */
export class RequestId extends Context.Reference<RequestId>()("http/server/RequestId", {
  defaultValue: () => "none"
}) {}

/** The header that carries it in both directions. */
export const header = "x-request-id"

const wellFormed = /^[A-Za-z0-9._:-]{1,128}$/

/** The client's id when it is 1 to 128 characters of `[A-Za-z0-9._:-]`, else a new one with the time `now`. */
export const of = (given: string | undefined, now: number): string =>
  given !== undefined && wellFormed.test(given) ? given : typeId("req", now)

/** {@link of} with the current time. */
export const resolve = (given: string | undefined): Effect.Effect<string> =>
  Effect.map(Clock.currentTimeMillis, (now) => of(given, now))
